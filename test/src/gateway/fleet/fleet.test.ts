// The fleet over simulated devices: probes, clocks, breakers, and devices that appear, change and disappear.
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { Device } from '../../../../src/gateway/device/device.ts'
import { Fleet, type FleetOptions } from '../../../../src/gateway/fleet/fleet.ts'
import { publishFleet } from '../../../../src/gateway/fleet/fleet-metrics.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import type { Log } from '../../../../src/shared/base/log.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { Secret } from '../../../../src/shared/base/secret.ts'
import { FakeDevice } from '../../../support/devices/fake-device.ts'
import { eventually } from '../../../support/eventually.ts'
import { DEVICE_PASSWORD } from '../../../support/suite-secrets.ts'

const PROBE_MS = 100
const SECOND_NS = 1_000_000_000n

describe('the fleet', () => {
  let fakes: FakeDevice[]
  let fleet: Fleet
  let options: FleetOptions
  let logged: string[]

  beforeEach(async () => {
    fakes = await Promise.all(['d0', 'd1'].map((name) => FakeDevice.start(name, Buffer.alloc(24))))
    logged = []
    const record = (event: string, fields?: Readonly<Record<string, unknown>>) =>
      void logged.push(`${event} ${fields?.device}`)
    const log: Log = { debug: record, info: record, warn: record, error: record }
    options = {
      connectTimeoutMs: 60_000,
      idleTimeoutMs: 60_000,
      probeTimeoutMs: 60_000,
      listTimeoutMs: 60_000,
      probeIntervalMs: PROBE_MS,
      failuresMax: 3,
      lists: { bytesMax: 1_000_000, entriesMax: 1_000 },
      largeAnswersMax: 4,
      log,
    }
    fleet = new Fleet(options)
    fleet.replace(fakes.map(asDevice))
  })
  afterEach(async () => {
    await fleet[Symbol.asyncDispose]()
    for (const fake of fakes) await fake[Symbol.asyncDispose]()
  })

  const first = (): FakeDevice => fakes[0] as FakeDevice
  const reportOf = (name: string) => fleet.get(name).health.report
  const probed = () => Promise.all(fleet.members.map(({ health }) => health.probedOnce))

  test('knows what the probe of each device reported', async () => {
    first().clockAheadNs = 5_000_000_000n
    first().oldestPacketNs = 1_700_000_000_000_000_001n
    first().outsiders = 2
    await probed()
    const report = reportOf('d0')
    assert.deepEqual(
      [
        report.reachable,
        report.version,
        report.status?.readers,
        report.status?.ptp,
        report.oldestPacketNs,
        report.error,
      ],
      [true, '1.2.3', 2, { sync: true, offsetNs: 12.5 }, 1_700_000_000_000_000_001n, undefined],
    )
    assert.ok(report.since !== undefined && report.probeMs !== undefined && report.probeMs > 0)
  })

  test('knows what a device captures, and of what it is no reading', async () => {
    first().answers.set('/api/v1/system/status', {
      capture: {
        CaptureState: 'running',
        CaptureName: 'lab',
        CaptureRateGbps: 1.5,
        CaptureDrop: 0,
        unavailable: ['CaptureDrop'],
      },
      disk: { FreeGB_Store0: 12.5, unavailable: [] },
      other: { StoreSize: 100_000_000_000, unavailable: ['UptimeHour'] },
    })
    await probed()
    await eventually(() => reportOf('d0').status !== undefined, { message: 'the status' })
    assert.deepEqual(reportOf('d0').status, {
      serial: undefined,
      readers: undefined,
      ptp: undefined,
      capture: { state: 'running', name: 'lab', gbps: 1.5, mpps: undefined, drops: undefined },
      storeBytes: 100_000_000_000,
      storeFreeBytes: 12_500_000_000,
    })
  })

  test('has a metric for a device whose capture cannot run, as long as the device reports it', async () => {
    const metrics = new Metrics()
    publishFleet(fleet, metrics)
    const becomes = (state: string | undefined, failing: readonly string[]) => {
      first().answers.set('/api/v1/system/status', { capture: { CaptureState: state } })
      return eventually(
        async () => {
          const told = (await metrics.text()).match(/^capfleet_device_capture_failing\S* \d$/gm) ?? []
          return isDeepStrictEqual(told, failing)
        },
        { message: `the capture of d0 is ${state}` },
      )
    }
    await becomes('error', ['capfleet_device_capture_failing{device="d0"} 1'])
    await becomes('idle', ['capfleet_device_capture_failing{device="d0"} 0'])
    await becomes(undefined, [])
  })

  test('probes over the connection of the probe before, however short its patience is', async () => {
    await using patient = new Fleet({ ...options, probeTimeoutMs: 500, probeIntervalMs: 800 })
    const device = await FakeDevice.start('d9', Buffer.alloc(24))
    try {
      patient.replace([asDevice(device)])
      // A probe that a busy machine made too late for its patience has ended its connection.
      let [connections, probes] = [0, 0]
      const areKept = () => {
        if (device.connections !== connections) probes = device.probes.length
        connections = device.connections
        return device.probes.length >= probes + 10
      }
      await eventually(areKept, { message: 'three probes over the same connections' })
    } finally {
      await device[Symbol.asyncDispose]()
    }
  })

  test("measures a device's clock with a bound that includes the truth", async () => {
    for (const aheadNs of [0n, 3_600_000_000_000n, -250_000_000n]) {
      first().clockAheadNs = aheadNs
      const since = first().probes.length
      await eventually(() => first().probes.length >= since + 8, { message: 'two more probes' })
      const errorNs = () => fleet.clockOf('d0')?.errorNs ?? SECOND_NS
      await eventually(() => errorNs() < SECOND_NS / 2n, { message: 'a bound that says much' })
      const clock = fleet.clockOf('d0')
      assert.ok(clock !== undefined)
      const off = clock.offsetNs - aheadNs
      // The simulated device reads its clock with a resolution of one millisecond.
      assert.ok((off < 0n ? -off : off) <= clock.errorNs + 1_000_000n, `${off} ${clock.errorNs}`)
    }
    assert.equal(fleet.clockOf('nobody'), undefined)
  })

  test('notices a device going and returning, each with one log line, and keeps what it knew', async () => {
    await probed()
    const { port } = first()
    const cameAt = reportOf('d0').since
    await first().kill()
    await eventually(() => reportOf('d0').reachable === false, { message: 'd0 is down' })
    const down = reportOf('d0')
    assert.deepEqual(
      [down.error?.code, down.version, down.status?.readers],
      ['device-unreachable', '1.2.3', undefined],
    )
    assert.ok(down.since !== undefined && cameAt !== undefined && down.since >= cameAt)
    assert.equal(reportOf('d1').reachable, true)
    fakes[0] = await FakeDevice.start('d0', Buffer.alloc(24), port)
    await eventually(() => reportOf('d0').reachable === true, { message: 'd0 is up' })
    assert.deepEqual(
      logged.filter((line) => /^device\.(up|down) d0/.test(line)),
      ['device.up d0', 'device.down d0', 'device.up d0'],
    )
  })

  test('a device that takes connections and says nothing is down', async () => {
    await using impatient = new Fleet({ ...options, probeTimeoutMs: 300 })
    impatient.replace(fakes.map(asDevice))
    const { health } = impatient.get('d0')
    await eventually(() => health.report.reachable === true, { message: 'd0 is up' })
    first().behaviour = { silent: true }
    await eventually(() => health.report.error !== undefined, { message: 'd0 is down' })
    assert.deepEqual([health.report.reachable, health.report.error?.code], [false, 'device-timeout'])
  })

  test('asks a device for its readers when it is asked, not before', async () => {
    await probed()
    first().outsiders = 3
    assert.equal(await fleet.readersOf('d0'), 3)
    assert.equal(await fleet.readersOf('nobody'), undefined)
    first().behaviour = { body: Buffer.from('{"cat":{}}') }
    assert.equal(await fleet.readersOf('d0'), undefined, 'a device without the member never tells')
    await first().kill()
    await assert.rejects(fleet.readersOf('d0'), { code: 'device-unreachable' })
  })

  test('a failed call has the devices that it names probed at once, and gives up none of them', async () => {
    await using slow = new Fleet({ ...options, probeIntervalMs: 3_600_000 })
    slow.replace(fakes.map(asDevice))
    await Promise.all(slow.members.map(({ health }) => health.probedOnce))
    const probes = first().probes.length
    const failure = new CapfleetError('device-timeout', 'no byte', { members: { devices: ['d0', 'gone'] } })
    for (let count = 0; count < 1_000; count += 1) slow.suspect(failure)
    assert.equal(slow.get('d0').breaker.state, 'closed')
    await eventually(() => first().probes.length > probes, { message: 'd0 is probed' })
    await first().kill()
    // While callers need it, which their failing calls show, it is found dead without a timer.
    await eventually(
      () => {
        slow.suspect(failure)
        return slow.get('d0').breaker.state === 'open'
      },
      { message: 'd0 is given up' },
    )
    assert.equal(slow.get('d1').breaker.state, 'closed')
  })

  test('a device that is down opens its breaker by its probes alone', async () => {
    await probed()
    await first().kill()
    await eventually(() => fleet.get('d0').breaker.state === 'open', { message: 'd0 is open' })
  })

  test('keeps what stays the same, replaces what changed, forgets what went', async () => {
    await probed()
    const [d0, d1] = fakes.map(asDevice) as [Device, Device]
    const before = fleet.get('d0')
    const changed = new Device({ name: 'd1', url: d1.url.href, user: 'gateway', password: new Secret('new') })
    const third = new Device({
      name: 'd2',
      url: d1.url.href,
      user: 'gateway',
      password: new Secret(DEVICE_PASSWORD),
    })
    assert.deepEqual(fleet.replace([third, d0, changed]), { added: ['d2'], changed: ['d1'], removed: [] })
    assert.equal(fleet.get('d0'), before)
    assert.deepEqual(
      fleet.devices.map(({ name }) => name),
      ['d2', 'd0', 'd1'],
    )
    assert.deepEqual(fleet.replace([d0]), { added: [], changed: [], removed: ['d2', 'd1'] })
    assert.throws(() => fleet.get('d1'), { code: 'unknown-device' })
    assert.deepEqual(fleet.replace([], { leaving: [d0] }), { added: [], changed: [], removed: [] })
    assert.equal(fleet.get('d0'), before, 'a device that is leaving can still be found')
    assert.deepEqual([fleet.devices, fleet.members], [[], []])
  })

  test('streams on a device not reported by a directory yet are not taken for those of one that cannot count', async () => {
    await using starting = new Fleet(options)
    await assert.rejects(starting.readersOf('d0'), { code: 'discovery-pending' })
    starting.replace([], { isComplete: false })
    await assert.rejects(starting.readersOf('d0'), { code: 'discovery-pending' })
    starting.replace([])
    assert.equal(await starting.readersOf('d0'), undefined)
  })

  test('a device that went is not probed any more, and its client works for those who have it', async () => {
    await probed()
    const { client, health } = fleet.get('d0')
    const [d0, d1] = fakes as [FakeDevice, FakeDevice]
    fleet.replace([asDevice(d1)])
    await health.close()
    const [gone, stays] = [d0.probes.length, d1.probes.length]
    await eventually(() => d1.probes.length >= stays + 8, { message: 'd1 is probed twice' })
    assert.equal(d0.probes.length, gone)
    const options = { bytesMax: 1_000, signal: new AbortController().signal }
    const answer = (await client.getJson('/stream/list', options)) as { List: unknown }
    assert.deepEqual(answer.List, [])
  })

  test('a vanished device is down without being asked, and is probed at once when it is discovered again', async () => {
    await fleet[Symbol.asyncDispose]()
    await using slow = new Fleet({ ...options, probeIntervalMs: 3_600_000 })
    const heard: (boolean | undefined)[] = []
    slow.listen({ replaced: () => undefined, cameOrWent: (_, { reachable }) => heard.push(reachable) })
    const [d0, d1] = fakes.map(asDevice) as [Device, Device]
    slow.replace([d0, d1])
    await Promise.all(slow.members.map(({ health }) => health.probedOnce))
    const member = slow.get('d0')
    const { probedAt } = member.health.report
    const asked = () => [first().connections, first().probes.length, first().requests.length]
    const before = asked()
    const vanished = d0.vanished(new Date())
    assert.deepEqual(slow.replace([vanished, d1]), { added: [], changed: [], removed: [] })
    assert.equal(slow.get('d0'), member)
    await eventually(() => heard.length === 1, { message: 'it is down' })
    const { report } = member.health
    assert.match(report.error?.message ?? '', /^device d0 is not used: its directory has not listed it/)
    assert.deepEqual(
      [report.reachable, report.probedAt, report.version, report.status, member.breaker.state],
      [false, probedAt, '1.2.3', undefined, 'open'],
    )
    await assert.rejects(slow.readersOf('d0'), { code: 'device-unreachable' })
    const asking = { maxAgeMs: 0, signal: new AbortController().signal }
    await assert.rejects(member.captures.holding('lab', asking), { code: 'device-unreachable' })
    assert.deepEqual(asked(), before)
    slow.replace([asDevice(first()), d1])
    await eventually(() => heard.length === 2, { message: 'it is up' })
    assert.deepEqual([heard, member.breaker.state], [[false, true], 'closed'])
    assert.equal(await slow.readersOf('d0'), 0)
  })

  test('publishes up, probe time, clock and breaker of the devices that there are', async () => {
    const metrics = new Metrics()
    publishFleet(fleet, metrics)
    await probed()
    await eventually(() => fleet.clockOf('d0') !== undefined, { message: 'the clock is known' })
    const text = await metrics.text()
    for (const line of [
      /^capfleet_device_up\{device="d0"\} 1$/m,
      /^capfleet_device_probe_seconds\{device="d0"\} \d+\.\d+/m,
      /^capfleet_device_clock_offset_seconds\{device="d0"\} -?\d/m,
      /^capfleet_device_clock_error_seconds\{device="d0"\} \d/m,
      /^capfleet_device_oldest_packet_timestamp_seconds\{device="d0"\} 0$/m,
      /^capfleet_device_readers\{device="d1"\} 0$/m,
      /^capfleet_device_breaker\{device="d1",state="closed"\} 1$/m,
      /^capfleet_device_breaker\{device="d1",state="open"\} 0$/m,
    ])
      assert.match(text, line)
    fleet.replace([])
    assert.doesNotMatch(await metrics.text(), /^capfleet_device_\w+\{/m)
  })
})

function asDevice({ name, url, user, password }: FakeDevice): Device {
  return new Device({ name, url, user, password: new Secret(password) })
}
