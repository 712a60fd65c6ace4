import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { startGatewayFromFile } from '../../../src/gateway/gateway.ts'
import { gatewayConfigSchema, loadGatewayConfig } from '../../../src/gateway/gateway-config.ts'
import { putUser } from '../../../src/shared/auth/edit-users-file.ts'
import { parseConfig } from '../../../src/shared/base/config-file.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const SMALLEST = {
  devices: [{ name: 'd0', url: 'http://192.0.2.1', user: 'gateway', password: { env: 'X' } }],
  auth: { users: 'users.yaml' },
}

function problems(change: Record<string, unknown>): string {
  try {
    parseConfig(JSON.stringify({ ...SMALLEST, ...change }), 'gateway.yaml', gatewayConfigSchema)
  } catch (error) {
    assert.ok(error instanceof CapfleetError)
    assert.equal(error.code, 'bad-config')
    return error.message
  }
  return ''
}

test('the example loads, and its values are the defaults', async () => {
  const example = await loadGatewayConfig(join(REPOSITORY_ROOT, 'config/gateway.example.yaml'))
  const defaults = gatewayConfigSchema.parse(SMALLEST)
  for (const section of ['listen', 'redis', 'downloads', 'control'] as const) {
    assert.deepEqual(example[section], defaults[section], section)
  }
  assert.deepEqual([example.logLevel, example.drainS], [defaults.logLevel, defaults.drainS])
  assert.equal(example.home, resolve(REPOSITORY_ROOT, 'config', defaults.home))
  assert.equal(example.auth.users, resolve(REPOSITORY_ROOT, 'config/users.yaml'))
})

const [device] = SMALLEST.devices
for (const [change, expected] of [
  [{ devices: [{ ...device, streems: 1 }] }, 'devices[0].streems: unknown key'],
  [{ downloads: { waits: 1 } }, 'downloads.waits: unknown key (did you mean waitS?)'],
  [{ devices: [device, device] }, 'devices[1].name: "d0" is already the name of devices[0]'],
  [
    { devices: [device, { ...device, name: 'd1', url: `${device?.url}/` }] },
    'devices[1].url: is already the URL of devices[0]; a device has one name',
  ],
  [{ devices: [] }, 'devices: must name a device'],
  [{ devices: [{ ...device, name: 'D0' }] }, 'devices[0].name: must be 1 to 63 of'],
  [{ devices: [{ ...device, url: 'ftp://x' }] }, 'devices[0].url: must be http://host:port'],
  [{ devices: [{ ...device, url: 'http://u:p@x' }] }, 'devices[0].url: must be http://host:port'],
  [{ devices: [{ ...device, password: 'secret' }] }, 'devices[0].password: '],
  [
    { devices: [{ ...device, token: { env: 'X' } }] },
    'devices[0]: must have user and password, or token alone',
  ],
  [
    { devices: [{ ...device, password: undefined }] },
    'devices[0]: must have user and password, or token alone',
  ],
  [{ devices: [{ ...device, fetchCompression: 'lz4' }] }, 'devices[0].fetchCompression: '],
  [{ devices: [{ ...device, ignores: ['Offset'] }] }, 'devices[0].ignores[0]: '],
  [
    { devices: [{ ...device, ignores: ['Slice', 'TSMode', 'Slice'] }] },
    'devices[0].ignores[2]: names Slice twice',
  ],
  [
    { devices: [{ ...device, kind: 'capfleet', ignores: ['Slice'] }] },
    'devices[0].ignores: is for third-party devices',
  ],
  [
    { deviceDiscovery: [{ token: { env: 'X' } }] },
    'deviceDiscovery[0]: must have exactly one of srv and endpointSlice',
  ],
  [
    { deviceDiscovery: [{ srv: '_a._tcp.b', token: { env: 'X' }, allowCidrs: ['10.0.0.1'] }] },
    'allowCidrs[0]: must be an address with',
  ],
  [
    { deviceDiscovery: [{ srv: '_a._tcp.b', token: { env: 'X' }, dnsServers: ['ns1'] }] },
    'dnsServers[0]: must be an IP address',
  ],
  [
    { deviceDiscovery: [{ srv: '_a._tcp.b' }] },
    'deviceDiscovery[0]: must have user and password, or token alone',
  ],
  [{ health: { failuresMax: 0 } }, 'health.failuresMax: '],
  [{ redis: { url: 'http://x' } }, 'redis.url: must be redis://'],
  [{ redis: { url: 'redis://:secret@x' } }, 'redis.url: must be redis://'],
  [{ redis: { keyPrefix: 'a{b' } }, 'redis.keyPrefix: must be'],
  [{ downloads: { streamsPerDevice: 5 } }, 'downloads.streamsPerDevice: '],
  [{ downloads: { waitS: 20, waitMaxS: 10 } }, 'downloads.waitS: must not be larger'],
  [{ timeZone: 'Mars/Base' }, 'timeZone: must be an IANA name'],
  [{ listen: { port: 70_000 } }, 'listen.port: '],
  [{ listen: { host: '0.0.0.0' } }, 'listen.host: is not a loopback address'],
  [{ listen: { host: '::' } }, 'listen.host: is not a loopback address'],
  [{ listen: { host: '127.evil.example' } }, 'listen.host: is not a loopback address'],
  [{ auth: undefined }, 'auth: '],
] as const) {
  test(`says where and what is wrong: ${expected}`, () => {
    assert.ok(problems(change).includes(expected), problems(change))
  })
}

test('listens beyond this machine with TLS, or where something in front encrypts', () => {
  const tls = { cert: 'cert.pem', key: 'key.pem' }
  assert.equal(problems({ listen: { host: '0.0.0.0', tls } }), '')
  assert.equal(problems({ listen: { host: '0.0.0.0', allowInsecure: true } }), '')
  for (const host of ['127.0.0.2', '::1', 'localhost']) assert.equal(problems({ listen: { host } }), '')
})

test('a directory of devices is enough, in place of a list', () => {
  const deviceDiscovery = [
    { srv: '_capfleet._tcp.example.org', token: { env: 'X' }, dnsServers: ['[::1]:53', '192.0.2.1'] },
  ]
  assert.equal(problems({ devices: undefined, deviceDiscovery }), '')
})

test('refuses to start without users, without a secret, and on a Redis that may forget leases', async () => {
  await using folder = await tempFolder()
  const path = join(folder.path, 'gateway.yaml')
  const start = async (config: Record<string, unknown>) => {
    await writeFile(path, JSON.stringify({ ...SMALLEST, logLevel: 'silent', listen: { port: 0 }, ...config }))
    await startGatewayFromFile(path)
  }
  const isBadConfig = (part: RegExp) => (error: unknown) =>
    error instanceof CapfleetError && error.code === 'bad-config' && part.test(error.message)
  await assert.rejects(start({}), isBadConfig(/users\.yaml/))
  await putUser(join(folder.path, 'users.yaml'), { name: 'a', role: 'user' }, 'secret')
  const missing = { ...device, password: { env: 'CAPFLEET_NO_SUCH_VARIABLE' } }
  await assert.rejects(start({ devices: [missing] }), isBadConfig(/devices\[0\]\.password.*CAPFLEET_NO_SUCH/))
  await using redis = await TempRedis.create()
  const client = new Redis(redis.url)
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
  client.disconnect()
  const devices = [{ ...device, password: { env: 'PATH' } }]
  await assert.rejects(start({ devices, redis: { url: redis.url } }), isBadConfig(/noeviction/))
})
