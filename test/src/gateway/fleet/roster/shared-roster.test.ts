// Devices about which two programs on one Redis, or two names of one program, disagree.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Device } from '../../../../../src/gateway/device/device.ts'
import { Fleet } from '../../../../../src/gateway/fleet/fleet.ts'
import { SharedRoster } from '../../../../../src/gateway/fleet/roster/shared-roster.ts'
import { Metrics } from '../../../../../src/shared/base/metrics.ts'
import { Secret } from '../../../../../src/shared/base/secret.ts'
import { FakeDevice } from '../../../../support/devices/fake-device.ts'
import { SILENT_LOG } from '../../../../support/lease/lease-user.ts'
import { NotedChanges } from '../../../../support/noted-changes.ts'
import { TempRedis } from '../../../../support/processes/temp-redis.ts'

const EVERY_MS = 50

function deviceAt(name: string, url: string, { user, password } = { user: 'u', password: 'p' }): Device {
  return new Device({ name, url, user, password: new Secret(password) })
}

/** One program's view of the fleet. */
function program(redis: TempRedis, fleet: ConstructorParameters<typeof SharedRoster>[0]['fleet']) {
  const metrics = new Metrics()
  const warned: Readonly<Record<string, unknown>>[] = []
  const changes = new NotedChanges()
  const log = {
    ...SILENT_LOG,
    warn: (event: string, fields: Readonly<Record<string, unknown>> = {}) => {
      warned.push({ event, ...fields })
      changes.note()
    },
  }
  const options = { redis: { url: redis.url }, keyPrefix: 'test', log, metrics, everyMs: EVERY_MS }
  const roster = new SharedRoster({ fleet, ...options })
  const figures = async (name: string) =>
    [...(await metrics.text()).matchAll(new RegExp(`^capfleet_${name}\\{device="(\\w+)"\\} 1$`, 'gm'))].map(
      ([, device]) => device,
    )
  const warnings = (count: number) => changes.until(() => warned.length >= count)
  return { roster, warned, warnings, figures }
}

test('a name that leads elsewhere in another program is reported by both, while it does', async () => {
  await using redis = await TempRedis.create()
  const ours = { devices: [deviceAt('east', 'http://a'), deviceAt('west', 'http://b')], members: [] }
  const theirs = { devices: [deviceAt('west', 'http://c'), deviceAt('north', 'http://d')], members: [] }
  const one = program(redis, ours)
  await using _one = one.roster
  {
    const two = program(redis, theirs)
    await using _two = two.roster
    await Promise.all([one.warnings(1), two.warnings(1)])
    for (const { warned, figures } of [one, two]) {
      assert.deepEqual(
        warned.map(({ event, device }) => [event, device]),
        [['fleet.url-conflict', 'west']],
      )
      assert.deepEqual(await figures('device_url_conflict'), ['west'])
    }
  }
  // The other program has ended, and a new one agrees.
  ours.devices.push(deviceAt('south', 'http://e'))
  const three = program(redis, {
    devices: [deviceAt('south', 'http://f'), ours.devices[1] as Device],
    members: [],
  })
  await using _three = three.roster
  await one.warnings(2)
  assert.deepEqual(await one.figures('device_url_conflict'), ['south'])
})

test('two names of one appliance are reported', async () => {
  await using redis = await TempRedis.create()
  await using east = await FakeDevice.start('east', Buffer.alloc(24))
  await using west = await FakeDevice.start('west', Buffer.alloc(24))
  await using north = await FakeDevice.start('north', Buffer.alloc(24))
  const fakes = [east, west, north]
  for (const [index, fake] of fakes.entries())
    fake.answers.set('/api/v1/system/status', { other: { SerialNo: index < 2 ? 'S-1' : 'S-2' } })
  await using fleet = new Fleet({
    connectTimeoutMs: 10_000,
    idleTimeoutMs: 10_000,
    probeTimeoutMs: 10_000,
    listTimeoutMs: 10_000,
    probeIntervalMs: 3_600_000,
    failuresMax: 1_000_000,
    lists: { bytesMax: 1_000_000, entriesMax: 1_000 },
    largeAnswersMax: 4,
    log: SILENT_LOG,
  })
  fleet.replace(fakes.map((fake) => deviceAt(fake.name, fake.url, fake)))
  const one = program(redis, fleet)
  await using _one = one.roster
  await one.warnings(2)
  assert.deepEqual(
    one.warned.map(({ event, device, serial }) => [event, device, serial]),
    [
      ['fleet.same-appliance', 'east', 'S-1'],
      ['fleet.same-appliance', 'west', 'S-1'],
    ],
  )
  assert.deepEqual(await one.figures('device_duplicate'), ['east', 'west'])
})
