import assert from 'node:assert/strict'
import { test } from 'node:test'
import { admitDevices } from '../../../../../src/gateway/fleet/roster/discovered-devices.ts'
import { Secret } from '../../../../../src/shared/base/secret.ts'

const access = {
  credentials: { user: 'gateway', password: new Secret('secret') },
  site: 'eu',
  ca: undefined,
  fetchCompression: 'none',
} as const
const options = { settings: { scheme: 'https', allowCidrs: [] }, access } as const
const found = (name: string, addresses = ['192.0.2.1'], port = 443) => ({
  name,
  host: `${name}.example.org`,
  port,
  addresses,
})

test('refuses what has no name of a device, comes twice, has no port, no address or a forbidden one', () => {
  const { devices, refused } = admitDevices(
    [
      found('lon1'),
      found('Lon 2'),
      found('../x'),
      found('lon1', ['192.0.2.7']),
      found('lon3', [], 443),
      found('lon4', ['192.0.2.1', '::ffff:169.254.169.254']),
      found('lon5', ['192.0.2.5'], 0),
    ],
    options,
  )
  assert.deepEqual(
    devices.map((device) => [device.name, device.url.href, device.site]),
    [['lon1', 'https://lon1.example.org/', 'eu']],
  )
  assert.deepEqual(
    refused.map(({ name }) => name),
    ['Lon 2', '../x', 'lon1', 'lon3', 'lon4', 'lon5'],
  )
  assert.match(String(refused[4]?.reason), /169\.254\.169\.254 is forbidden; see allowCidrs/)
})

test('connects to the address that was checked, whatever the name resolves to later', async () => {
  const [device] = admitDevices([found('lon1', ['192.0.2.1', '2001:db8::1'])], options).devices
  const lookup = device?.connectOptions.lookup
  assert.ok(lookup)
  const one = await new Promise((resolve) => {
    lookup('lon1.example.org', {}, (_error, address, family) => resolve([address, family]))
  })
  assert.deepEqual(one, ['192.0.2.1', 4])
  const all = await new Promise((resolve) => {
    lookup('lon1.example.org', { all: true }, (_error, addresses) => resolve(addresses))
  })
  assert.deepEqual(all, [{ address: '192.0.2.1', family: 4 }])
})

test('an address of IPv6 makes a URL', () => {
  const entry = { name: 'pod-1', host: '2001:db8::7', port: 8443, addresses: ['2001:db8::7'] }
  assert.equal(admitDevices([entry], options).devices[0]?.url.href, 'https://[2001:db8::7]:8443/')
})

const HOSTILE_HOSTS = [
  '2130706433',
  '0x7f000001',
  '0x7f.1',
  '017700000001',
  '127.1',
  '127.0.0.1',
  '127.0.0.1.',
  '[::1]',
  '::1',
  'x@127.0.0.1',
  'user:pass@127.0.0.1',
  '127.0.0.1/x',
  '127.0.0.1:80/x',
  '127.0.0.1?x',
  '127.0.0.1#x',
  'x\\127.0.0.1',
  'a b',
  'a\r\nHost: b',
  '%31%32%37.0.0.1',
  '①②⑦.0.0.1',
  '127。0。0。1',
  'lon1\u0000.example.org',
  '',
]

test('a host that a URL parser reads differently is refused, whatever addresses its name has', () => {
  for (const host of HOSTILE_HOSTS) {
    const { devices } = admitDevices([{ name: 'lon1', host, port: 443, addresses: ['192.0.2.1'] }], options)
    assert.deepEqual(devices, [], JSON.stringify(host))
  }
})
