// Which devices make up the fleet if both the configuration and a directory list some.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Device } from '../../../../../src/gateway/device/device.ts'
import { Fleet } from '../../../../../src/gateway/fleet/fleet.ts'
import { discoverySchema } from '../../../../../src/gateway/fleet/roster/device-settings.ts'
import { FleetRoster } from '../../../../../src/gateway/fleet/roster/fleet-roster.ts'
import type { Log } from '../../../../../src/shared/base/log.ts'
import { Secret } from '../../../../../src/shared/base/secret.ts'
import { eventually } from '../../../../support/eventually.ts'
import { TinyDns } from '../../../../support/servers/tiny-dns.ts'

const SRV = '_capfleet._tcp.example.org'
const access = {
  credentials: { token: new Secret('secret') },
  site: undefined,
  ca: undefined,
  fetchCompression: 'none',
} as const

/** Nothing answers at these addresses (TEST-NET-1); only names matter here. */
const device = (name: string) => new Device({ name, url: 'http://127.0.0.1:9', token: new Secret('x') })

function setUp() {
  const logged: string[] = []
  const record = (event: string, fields?: Readonly<Record<string, unknown>>) =>
    void logged.push(`${event} ${fields?.device}`)
  const log: Log = { debug: record, info: record, warn: record, error: record }
  const fleet = new Fleet({
    connectTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    probeTimeoutMs: 60_000,
    listTimeoutMs: 60_000,
    probeIntervalMs: 60_000,
    failuresMax: 5,
    lists: { bytesMax: 1_000_000, entriesMax: 1_000 },
    largeAnswersMax: 4,
    log,
  })
  const busy = new Set<string>()
  const roster = new FleetRoster({ fleet, busyOf: async () => busy, log })
  return {
    fleet,
    roster,
    busy,
    logged,
    names: () => fleet.devices.map(({ name }) => name),
    [Symbol.asyncDispose]: async () => {
      await roster[Symbol.asyncDispose]()
      await fleet[Symbol.asyncDispose]()
    },
  }
}

test('configured devices come first, discovered ones beside them, and a name counts once', async () => {
  await using dns = await TinyDns.start([
    [SRV, 'SRV', '80 lon1.example.org'],
    [SRV, 'SRV', '80 nyc1.example.org'],
    ['lon1.example.org', 'A', '192.0.2.1'],
    ['nyc1.example.org', 'A', '192.0.2.2'],
  ])
  await using made = setUp()
  const settings = discoverySchema.parse({
    srv: SRV,
    dnsServers: [dns.address],
    intervalS: 0.1,
    token: { env: 'X' },
  })
  const devices = [device('zrh1'), device('lon1')]
  await made.roster.configure({ devices, discoveries: [{ settings, access }] })
  assert.deepEqual(made.names(), ['zrh1', 'lon1'])
  await eventually(() => made.names().length === 3, { message: 'nyc1 is found' })
  assert.deepEqual(made.names(), ['zrh1', 'lon1', 'nyc1'])
  assert.equal(made.fleet.get('lon1').device, devices[1])
  const asked = dns.questions
  await eventually(() => dns.questions > asked + 6, { message: 'DNS is asked again' })
  assert.equal(made.logged.filter((line) => line.startsWith('fleet.duplicate-device lon1')).length, 1)

  const nyc1 = made.fleet.get('nyc1')
  await made.roster.configure({ devices: [], discoveries: [{ settings: { ...settings }, access }] })
  assert.deepEqual(made.names(), ['lon1', 'nyc1'])
  assert.equal(made.fleet.get('nyc1'), nyc1, 'the same discovery goes on')
  const other = { ...access, credentials: { token: new Secret('other') } }
  await made.roster.configure({ devices: [], discoveries: [{ settings, access: other }] })
  await eventually(() => made.names().length === 2, { message: 'the devices are found anew' })
  assert.notEqual(made.fleet.get('nyc1').device, nyc1?.device, 'with another token')
  await made.roster.configure({ devices, discoveries: [] })
  assert.deepEqual(made.names(), ['zrh1', 'lon1'])
})

test('the fleet is complete when each discovery has answered; until then an unknown name may come', async () => {
  await using dns = await TinyDns.start([
    [SRV, 'SRV', '80 nyc1.example.org'],
    ['nyc1.example.org', 'A', '192.0.2.2'],
  ])
  dns.isBroken = true
  await using made = setUp()
  const settings = discoverySchema.parse({ srv: SRV, dnsServers: [dns.address], token: { env: 'X' } })
  await made.roster.configure({ devices: [device('zrh1')], discoveries: [{ settings, access }] })
  assert.equal(made.fleet.isComplete, false)
  assert.equal(made.fleet.choose('zrh1').device.name, 'zrh1')
  assert.throws(() => made.fleet.choose('nyc1'), { code: 'discovery-pending' })
  dns.isBroken = false
  await eventually(() => made.fleet.isComplete, { message: 'DNS has answered' })
  assert.deepEqual(made.names(), ['zrh1', 'nyc1'])
  assert.throws(() => made.fleet.choose('lon1'), { code: 'unknown-device' })
  await made.roster.configure({ devices: [device('zrh1')], discoveries: [] })
  assert.equal(made.fleet.isComplete, true)
})

test('a device that leaves is kept for its downloads, chosen by none, and gone when they are over', async () => {
  await using made = setUp()
  const [a, b] = [device('a'), device('b')]
  await made.roster.configure({ devices: [a, b], discoveries: [] })
  const member = made.fleet.get('a')
  made.busy.add('a')
  await made.roster.configure({ devices: [b], discoveries: [] })
  assert.deepEqual(made.names(), ['b'])
  assert.equal(made.fleet.find('a'), member)
  assert.throws(() => made.fleet.choose('a'), { code: 'unknown-device' })
  made.busy.clear()
  await eventually(() => made.fleet.find('a') === undefined, { message: 'a is gone' })
  assert.deepEqual(made.names(), ['b'])
})

test('a device that vanished from one directory is there if another one lists it', async () => {
  await using first = await TinyDns.start([
    [SRV, 'SRV', '80 lon1.example.org'],
    [SRV, 'SRV', '80 nyc1.example.org'],
    ['lon1.example.org', 'A', '192.0.2.1'],
    ['nyc1.example.org', 'A', '192.0.2.2'],
  ])
  await using second = await TinyDns.start([
    [SRV, 'SRV', '80 zrh1.example.org'],
    ['zrh1.example.org', 'A', '192.0.2.3'],
  ])
  await using made = setUp()
  const discoveries = [first, second].map(({ address }) => ({
    settings: discoverySchema.parse({
      srv: SRV,
      dnsServers: [address],
      intervalS: 0.1,
      token: { env: 'X' },
    }),
    access,
  }))
  await made.roster.configure({ devices: [], discoveries })
  await eventually(() => made.names().length === 3, { message: 'all are found' })
  const isGone = (name: string) => made.fleet.get(name).device.absence !== undefined
  first.table = first.table.filter((row) => !row.join().includes('nyc1'))
  await eventually(() => isGone('nyc1'), { message: 'nyc1 has vanished' })
  assert.deepEqual(made.names(), ['lon1', 'nyc1', 'zrh1'])
  const moved = [
    [SRV, 'SRV', '80 nyc1.example.org'],
    ['nyc1.example.org', 'A', '192.0.2.4'],
  ] as const
  second.table = [...second.table, ...moved]
  await eventually(() => !isGone('nyc1'), { message: 'nyc1 is there' })
  assert.deepEqual(made.names(), ['lon1', 'nyc1', 'zrh1'])
  assert.equal(made.fleet.get('nyc1').device.address, '192.0.2.4:80')
  assert.ok(!made.logged.some((line) => line.startsWith('fleet.duplicate-device')))
})

test('a discovered device that is kept for its downloads alone has vanished', async () => {
  await using dns = await TinyDns.start([
    [SRV, 'SRV', '80 lon1.example.org'],
    [SRV, 'SRV', '80 nyc1.example.org'],
    ['lon1.example.org', 'A', '192.0.2.1'],
    ['nyc1.example.org', 'A', '192.0.2.2'],
  ])
  await using made = setUp()
  const settings = discoverySchema.parse({
    srv: SRV,
    dnsServers: [dns.address],
    intervalS: 0.1,
    keepS: 0,
    token: { env: 'X' },
  })
  await made.roster.configure({ devices: [], discoveries: [{ settings, access }] })
  await eventually(() => made.names().length === 2, { message: 'both are found' })
  const [lon1, nyc1] = ['lon1', 'nyc1'].map((name) => made.fleet.get(name))
  made.busy.add('lon1').add('nyc1')
  dns.table = dns.table.filter((row) => !row.join().includes('nyc1'))
  await eventually(() => made.names().length === 1, { message: 'nyc1 leaves' })
  assert.equal(made.fleet.find('nyc1'), nyc1)
  assert.ok(nyc1?.device.absence !== undefined)
  await made.roster.configure({ devices: [], discoveries: [] })
  assert.equal(made.fleet.find('lon1'), lon1)
  assert.ok(lon1?.device.absence !== undefined, 'its directory is asked no more')
})

test('a device that returns before its downloads are over is a full member again', async () => {
  await using made = setUp()
  const devices = [device('a')]
  await made.roster.configure({ devices, discoveries: [] })
  const member = made.fleet.get('a')
  made.busy.add('a')
  await made.roster.configure({ devices: [], discoveries: [] })
  await made.roster.configure({ devices, discoveries: [] })
  made.busy.clear()
  assert.deepEqual([made.names(), made.fleet.get('a')], [['a'], member])
})
