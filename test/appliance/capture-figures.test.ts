// What users see of a capture on ports, over HTTP: figures, drops by cause, schedules, failures.
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { PortDriver } from '../../appliance/recorder/capture/port-driver.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import { eventually } from '../support/eventually.ts'
import { ScriptedEngine, scriptedStream } from '../support/live/scripted-engine.ts'
import { startTempAppliance, type TempAppliance } from '../support/processes/temp-appliance.ts'

const START = '/sysmaster/capture_start?StreamName=live'
const STOP = '/sysmaster/capture_stop'
const ROW = { name: 'always', start: '00:00:00', stop: '24:00:00', zone: 'UTC' }
const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']
let appliance: TempAppliance
/** Counts of the capture that was started last. */
let engine: ScriptedEngine
let refusal: Error | undefined

async function start(config: Readonly<Record<string, unknown>> = {}): Promise<TempAppliance> {
  const driver = new PortDriver({
    ports: [0, 3].map((port) => ({
      port,
      interfaceName: `eth${port}`,
      threads: 1,
      ringBytes: 2 ** 22,
      snaplen: 262_144,
      isPromiscuous: false,
    })),
    segmentBytes: 2 ** 20,
    syncIntervalMs: 100,
    queueBytes: 2 ** 22,
    open: async () => {
      if (refusal !== undefined) throw refusal
      engine = new ScriptedEngine([0, 3])
      return engine
    },
  })
  return await startTempAppliance({ config, driver })
}

before(async () => {
  appliance = await start()
})
after(() => appliance[Symbol.asyncDispose]())
beforeEach(async () => {
  refusal = undefined
  await appliance.get(STOP)
})

type Body = Readonly<Record<string, unknown>>
const json = async (path: string): Promise<Body> => (await appliance.get(path)).json()
const csv = async (): Promise<ReadonlyMap<string, string>> =>
  new Map(
    (await appliance.get('/sysmaster/status')).body
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => /^([a-z_0-9]+), *(.*)$/.exec(line)?.slice(1) as [string, string]),
  )

test('drops are reported by cause, next to all other counts', async () => {
  await appliance.get(START)
  engine.count(
    0,
    {
      seenPackets: 1_000n,
      seenBytes: 80_000n,
      storedPackets: 900n,
      storedBytes: 90_000n,
      ringDrops: 60n,
      diskDrops: 30n,
      pendingPackets: 10n,
      filteredPackets: 5n,
      fcsErrors: 7n,
      lastPacketNs: 1_700_000_000_123_456_789n,
    },
    { pendingBytes: 1_160n, flushedNs: 1_700_000_000_000_000_000n },
  )
  const status = await json('/sysmaster/capture_status')
  const names = ['CapturePacket', 'CaptureByte', 'CaptureDrop', 'CaptureDropRing', 'CaptureDropDisk']
  assert.deepEqual(
    [...names, 'CapturePending', 'CaptureFiltered', 'CaptureFCSError'].map((name) => status[name]),
    [900, 90_000, 90, 60, 30, 10, 5, 7],
  )
  assert.deepEqual([status.LastPacketTS, status.FlushedTS], ['1700000000123456789', '1700000000000000000'])
  await eventually(async () => (await csv()).get('packets_dropped') === '90', {
    message: 'the CSV shows the drops',
  })
  const rows = await csv()
  // 30 packets for which the disk was too slow, each as long as the average received packet.
  assert.deepEqual(
    ['packets_captured', 'bytes_captured', 'bytes_pending', 'bytes_overflow'].map((key) => rows.get(key)),
    ['900', '90000', '1160', String(Math.round((30 * 80_000) / 940))],
  )
  const { capture } = (await json('/api/v1/system/status')) as Readonly<Record<string, Body>>
  assert.deepEqual(
    [capture?.CaptureDrop, capture?.CaptureDropDisk, capture?.CapturePort0_Pkt, capture?.CapturePort0_Byte],
    [90, 30, 900, 90_000],
  )
  assert.deepEqual([capture?.CaptureFCSError, capture?.CapturePending], [7, 10])
})

test('rates are of what was stored in the last 5 seconds, not of what a filter dropped', async () => {
  await appliance.get(START)
  await eventually(async () => (await json('/sysmaster/capture_status')).CapturePps === 0, {
    message: 'nothing comes in',
  })
  let shown: Body = {}
  let [arrivals, arrivedMs] = [0n, Number.NEGATIVE_INFINITY]
  const isRisen = async () => {
    // The same comes again if a busy machine has missed the rate of its 5 seconds.
    if (performance.now() - arrivedMs > 20_000) {
      arrivals += 1n
      arrivedMs = performance.now()
      engine.count(0, {
        seenPackets: arrivals * 9_000n,
        seenBytes: arrivals * 9_000_000n,
        filteredPackets: arrivals * 8_500n,
        storedPackets: arrivals * 500n,
        storedBytes: arrivals * 50_000n,
      })
    }
    shown = await json('/sysmaster/capture_status')
    return Number(shown.CapturePps) > 0
  }
  await eventually(isRisen, { message: 'the rate rises' })
  const { CapturePps, CaptureBps } = shown
  assert.ok(Number(CapturePps) <= 100, String(CapturePps))
  assert.ok(Math.abs(Number(CaptureBps) / Number(CapturePps) - 800) < 1e-6)
  await eventually(async () => (await json('/sysmaster/capture_status')).CapturePps === 0, {
    message: 'the rate falls',
  })
})

test('a stop says what was captured and what was lost', async () => {
  await appliance.get(START)
  engine.count(0, { ringDrops: 2n, diskDrops: 1n })
  engine.streams = [scriptedStream(0, 1, [4n])]
  const stopped = await json(STOP)
  assert.deepEqual([stopped.CapturePacket, stopped.CaptureDrop], [4, 3])
})

test('a device that cannot capture answers 503 with the reason, and stays up', async () => {
  refusal = new CapfleetError('capture-unavailable', 'eth3: no such interface; see `ip link`')
  const answer = await appliance.get(START)
  assert.deepEqual([answer.status, answer.json().code], [503, 'capture-unavailable'])
  assert.match(String(answer.json().detail), /eth3: no such interface/)
  const status = await json('/sysmaster/capture_status')
  assert.deepEqual([status.State, status.CaptureEnable, status.StreamName], ['error', 'false', ''])
  assert.match(String(status.Message), /no such interface/)
  const list = (await json('/stream/list')).List as readonly Body[]
  assert.deepEqual(
    list.filter(({ IsActive }) => IsActive),
    [],
  )
  refusal = undefined
  assert.equal((await appliance.get(START)).status, 200)
})

test('stopping a scheduled capture is 409 unless it is until its next run; the schedule shows the state', async () => {
  await using scheduled = await start({ capture: { schedule: [{ ...ROW, days: DAYS }] } })
  const get = async (path: string): Promise<Body> => (await scheduled.get(path)).json()
  const rowNow = async (): Promise<Body | undefined> =>
    ((await get('/api/v1/capture/schedule')).List as Body[])[0]
  const isState = (state: string) =>
    eventually(async () => (await rowNow())?.State === state, { message: state })
  await isState('running')
  const { NextStartTS, NextStopTS, Days } = (await rowNow()) ?? {}
  assert.deepEqual([NextStopTS, Days], ['0', DAYS], 'it never stops')
  assert.match(String(NextStartTS), /^\d{19}$/)
  const refused = await scheduled.get(STOP)
  assert.deepEqual(
    [refused.status, refused.json().code, refused.json().ScheduleName, refused.json().Status],
    [409, 'capture-scheduled', 'always', false],
  )
  const { Scheduled, ScheduleName } = await get('/sysmaster/capture_status')
  assert.deepEqual([Scheduled, ScheduleName], [true, 'always'])
  assert.equal((await scheduled.get(`${STOP}?Until=next`)).status, 200)
  await isState('skipped')
})

test('a row that waits for a capture started by command says so', async () => {
  // Before the row begins the appliance has started and answered twice; a busy machine is given more time.
  for (let leadMs = 8_000; ; leadMs *= 2) {
    const startS = Math.floor((Date.now() + leadMs) / 1_000)
    const text = (atS: number): string => new Date(atS * 1_000).toISOString().slice(11, 19)
    const row = { ...ROW, start: text(startS), stop: text(startS + 3_600), days: DAYS }
    await using scheduled = await start({ capture: { schedule: [row] } })
    const rowNow = async (): Promise<Body | undefined> =>
      ((await scheduled.get('/api/v1/capture/schedule')).json().List as Body[])[0]
    const { State, NextStartTS } = (await rowNow()) ?? {}
    await scheduled.get(START)
    if (Date.now() >= startS * 1_000) continue
    assert.deepEqual([State, NextStartTS], ['', `${startS}000000000`])
    await eventually(async () => (await rowNow())?.State === 'waiting', { message: 'waiting' })
    await scheduled.get(STOP)
    await eventually(async () => (await rowNow())?.State === 'running', { message: 'running' })
    return
  }
})
