// All known ways to write an address so that a check takes it for another one.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deviceSchema } from '../../../../../src/gateway/fleet/roster/device-settings.ts'
import { admitDevices } from '../../../../../src/gateway/fleet/roster/discovered-devices.ts'
import { isPlainHost, isPlainUrl } from '../../../../../src/gateway/fleet/roster/plain-host.ts'
import { Secret } from '../../../../../src/shared/base/secret.ts'

/**
 * Addresses to which only the operator may direct the gateway: itself, its link, and the metadata services of clouds.
 */
const TARGETS = ['127.0.0.1', '127.8.8.8', '0.0.0.0', '169.254.169.254', '168.63.129.16', '100.100.100.200']

const numbersOf = (address: string) => address.split('.').map(Number) as [number, number, number, number]
const wholeOf = (address: string) => numbersOf(address).reduce((sum, part) => sum * 256 + part, 0)
const hex = (value: number) => value.toString(16)
const octal = (value: number) => `0${value.toString(8)}`
const fullWidth = (text: string) =>
  text.replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))
const circled = (text: string) =>
  text.replaceAll(/[1-9]/g, (digit) => String.fromCodePoint(0x245f + Number(digit)))

/** Texts that some parser reads as `address`, none of them its usual form. */
function disguises(address: string): string[] {
  const [a, b, c, d] = numbersOf(address)
  const whole = wholeOf(address)
  const forms = [
    String(whole),
    `0x${hex(whole)}`,
    `0X${hex(whole).toUpperCase()}`,
    octal(whole),
    `00${octal(whole)}`,
    String(whole + 2 ** 32),
    `${a}.${(b << 16) + (c << 8) + d}`,
    `${a}.${b}.${(c << 8) + d}`,
    [a, b, c, d].map((part) => `0x${hex(part)}`).join('.'),
    [a, b, c, d].map(octal).join('.'),
    [a, b, c, d].map((part) => `00${octal(part)}`).join('.'),
    `0x${hex(a)}.${b}.${c}.${d}`,
    `${a}.${octal(b)}.${c}.0x${hex(d)}`,
    `${address}.`,
    `${address}..`,
    `.${address}`,
    fullWidth(address),
    circled(address),
    address.replaceAll('.', '。'),
    address.replaceAll('.', '%2e'),
    [...address].map((character) => `%${hex(character.codePointAt(0) ?? 0)}`).join(''),
    `x@${address}`,
    `user:password@${address}`,
    `lon1.example.org@${address}`,
    `lon1.example.org\\@${address}`,
    `${address}#lon1.example.org`,
    `${address}?lon1.example.org`,
    `${address}/lon1.example.org`,
    `${address}\\lon1.example.org`,
    `${address} lon1.example.org`,
    `${address}\tlon1`,
    `${address}\r\nHost: lon1`,
    `${address}\u0000.example.org`,
    `[${address}]`,
    `[${address}`,
    `${address}%25eth0`,
  ]
  // The digit zero has no circled form.
  return forms.filter((form) => form !== address)
}

/** IPv6 addresses that a translator, a tunnel or the kernel treats as `address`. */
function translations(address: string): string[] {
  const [a, b, c, d] = numbersOf(address)
  const groups = `${hex((a << 8) + b)}:${hex((c << 8) + d)}`
  return [
    `::ffff:${address}`,
    `::FFFF:${address}`,
    `::ffff:${groups}`,
    `0:0:0:0:0:ffff:${address}`,
    `0000:0000:0000:0000:0000:ffff:${groups}`,
    `::${address}`,
    `::${groups}`,
    `::ffff:0:${address}`,
    `64:ff9b::${address}`,
    `64:ff9b::${groups}`,
    `0064:ff9b:0::${groups}`,
    `64:ff9b:1::${address}`,
    `64:ff9b:1:ffff::${groups}`,
    `2002:${groups}::1`,
    `2001:0:${groups}::1`,
    `::ffff:${address}%eth0`,
  ]
}

const FOUND = {
  access: { credentials: { token: new Secret('x') }, site: undefined, fetchCompression: 'none' },
} as const

function admitted(host: string, addresses: readonly string[], allowCidrs: readonly string[] = []): number {
  const settings = { scheme: 'http', allowCidrs } as const
  return admitDevices([{ name: 'lon1', host, port: 80, addresses }], { settings, ...FOUND }).devices.length
}

function isConfigured(url: string): boolean {
  return deviceSchema.safeParse({ name: 'lon1', url, token: { env: 'X' } }).success
}

test('no disguise of an address gets a discovered device admitted, nor a configured one', () => {
  const forms = TARGETS.flatMap(disguises)
  for (const host of forms) {
    // A directory may list any address for it, also a harmless one.
    assert.equal(admitted(host, ['192.0.2.1']), 0, JSON.stringify(host))
    assert.equal(isPlainHost(host), false, JSON.stringify(host))
    // A path is no disguise in a URL: it is clearly separate from the host.
    const isPath = /^[\d.]+\/[a-z0-9.]+$/.test(host)
    assert.equal(isConfigured(`http://${host}`), isPath, JSON.stringify(host))
    assert.equal(isConfigured(`http://${host}:8080/`), false, JSON.stringify(host))
  }
  const translated = TARGETS.flatMap(translations)
  for (const address of [...TARGETS, ...translated]) {
    assert.equal(admitted(address, [address]), 0, address)
    assert.equal(admitted('lon1.example.org', ['192.0.2.1', address]), 0, `a name with ${address}`)
    assert.equal(admitted(address, ['192.0.2.1']), 0, `${address} that claims another`)
  }
  assert.ok(forms.length + translated.length >= 300, `${forms.length + translated.length} forms`)
})

test('what the operator allows, or writes down, is reached by its usual form alone', () => {
  for (const address of TARGETS) {
    assert.equal(admitted(address, [address], ['0.0.0.0/0']), 1, address)
    assert.equal(isConfigured(`http://${address}:8080`), true, address)
    for (const host of disguises(address)) assert.equal(admitted(host, [address], ['0.0.0.0/0']), 0, host)
  }
})

for (const url of [
  'http://lon1',
  'https://lon1.example.org',
  'https://lon1.example.org:8443/',
  'http://LON1.example.org',
  'http://localhost:8081',
  'http://10.0.0.7',
  'http://[2001:db8::7]:8081',
  'http://[::1]',
  'https://gateway.example.org/devices/lon1',
  'https://xn--mnchen-3ya.example',
]) {
  test(`a device may be at ${url}`, () => assert.equal(isPlainUrl(url), true))
}

for (const url of [
  '',
  'lon1:8080',
  '//lon1',
  'http:lon1',
  'http:/lon1',
  'http:///lon1',
  'http:\\\\lon1',
  'ftp://lon1',
  'file:///etc/passwd',
  'gopher://lon1:70/_x',
  'unix:/run/redis.sock',
  'http+unix://%2Frun%2Fredis.sock',
  'javascript:alert(1)',
  'data:text/plain,x',
  'ws://lon1',
  'http://@lon1',
  'http://:@lon1',
  'http://user@lon1',
  'http://user:password@lon1',
  'http://lon1?',
  'http://lon1/?x=1',
  'http://lon1#',
  'http://lon1/#x',
  'http://lon1/a/../b',
  'http://lon1/a/%2e%2e/b',
  'http://lon1/a b',
  'http://lon1:0',
  'http://lon1:65536',
  'http://lon1:80:80',
  'http://lo\tn1',
  'http://lon1\n',
  ' http://lon1',
  'http://[::1',
  'http://::1',
  'http://[lon1]',
  'http://[fe80::1%25eth0]',
  'http://münchen.example',
]) {
  test(`a device may not be at ${JSON.stringify(url)}`, () => assert.equal(isPlainUrl(url), false))
}
