// The state machine of a device's capture, over a real store, with a driver that the test steers.
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { CaptureControl } from '../../appliance/capture-control.ts'
import type { CaptureCounts, CaptureDriver, CaptureTarget } from '../../appliance/capture-driver.ts'
import { noPortDriver } from '../../appliance/no-port-driver.ts'
import { StoreWriter } from '../../appliance/store-writer.ts'
import { createLog } from '../../src/base/log.ts'
import { eventually } from '../support/eventually.ts'
import { type TempFolder, tempFolder } from '../support/temp-folder.ts'

const log = createLog('test', 'silent')
const never = new AbortController().signal
const START_NS = 1_795_171_264_123_456_789n // 2026-11-20 10:41:04 UTC

/** Records what it is told; `refusal` makes it fail. */
class SteeredDriver implements CaptureDriver {
  readonly ports = [0, 3]
  readonly calls: string[] = []
  refusal: Error | undefined
  fail: (error: Error) => void = () => undefined

  async start({ name }: CaptureTarget, onFailure: (error: Error) => void): Promise<void> {
    if (this.refusal !== undefined) throw this.refusal
    this.calls.push(`start ${name}`)
    this.fail = onFailure
  }

  async stop() {
    this.calls.push('stop')
    if (this.refusal !== undefined) throw this.refusal
    const segment = { number: 1, minNs: START_NS - 5n, maxNs: START_NS + 7n, packets: 3n, bytes: 300n }
    return { streams: [{ port: 3, linkType: 1, snaplen: 262_144, segments: [segment] }] }
  }

  counts(): CaptureCounts {
    return { ...noPortDriver.counts(), packets: 2n }
  }
}

let folder: TempFolder
let writer: StoreWriter
let driver: SteeredDriver
let nowNs: bigint

beforeEach(async () => {
  folder = await tempFolder()
  writer = await StoreWriter.open(join(folder.path, 'store'))
  driver = new SteeredDriver()
  nowNs = START_NS
})
afterEach(async () => {
  await writer[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const open = (): Promise<CaptureControl> =>
  CaptureControl.open(writer, { driver, timeZone: 'America/New_York', nowNs: () => nowNs, log })
const stored = (): Promise<string[]> => readdir(join(folder.path, 'store', 'captures'))

test('starts under a name with the local time, and stops', async () => {
  await using control = await open()
  assert.deepEqual([control.report().state, control.report().name], ['idle', ''])
  const report = await control.start({ baseName: 'trade' }, never)
  assert.deepEqual(
    [report.state, report.name, report.baseName, report.startNs, report.ports, report.counts.packets],
    ['running', 'trade_20261120_0541', 'trade', START_NS, [0, 3], 2n],
  )
  const [active] = await writer.activeCaptures()
  assert.deepEqual([active?.name, active?.state, active?.type], ['trade_20261120_0541', 'active', 'capture'])
  nowNs += 60_000_000_000n
  const stopped = await control.stop(false, never)
  assert.deepEqual(stopped, {
    name: 'trade_20261120_0541',
    baseName: 'trade',
    stopNs: nowNs,
    packets: 3n,
    bytes: 300n,
  })
  assert.equal(control.report().state, 'idle')
  assert.deepEqual(driver.calls, ['start trade_20261120_0541', 'stop'])
  assert.deepEqual(await writer.activeCaptures(), [])
})

test('a second start in the same minute gets the second, a third a number', async () => {
  await using control = await open()
  const names: string[] = []
  for (let round = 0; round < 4; round++) {
    names.push((await control.start({ baseName: 'x' }, never)).name)
    await control.stop(false, never)
  }
  assert.deepEqual(names, [
    'x_20261120_0541',
    'x_20261120_0541_04',
    'x_20261120_0541_04_2',
    'x_20261120_0541_04_3',
  ])
})

test('of many starts at once one wins, and the others say which', async () => {
  await using control = await open()
  const results = await Promise.allSettled(
    ['a', 'b', 'c', 'd'].map((baseName) => control.start({ baseName }, never)),
  )
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'rejected', 'rejected'],
  )
  for (const result of results.slice(1)) {
    assert.ok(result.status === 'rejected')
    assert.deepEqual(
      [result.reason.code, result.reason.details.members],
      ['capture-running', { StreamName: 'a_20261120_0541' }],
    )
  }
  assert.deepEqual(await stored(), ['a_20261120_0541'])
})

test('of two stops at once one wins; a start and a stop at once are done in their order', async () => {
  await using control = await open()
  const [started, stopped, second] = await Promise.allSettled([
    control.start({ baseName: 'a' }, never),
    control.stop(false, never),
    control.stop(false, never),
  ])
  assert.deepEqual([started?.status, stopped?.status], ['fulfilled', 'fulfilled'])
  assert.ok(second?.status === 'rejected')
  assert.equal(second.reason.code, 'capture-not-running')
})

test('a bad base name is refused and changes nothing', async () => {
  await using control = await open()
  for (const baseName of ['', '.a', '../a', 'a b', 'a/b', 'ä', 'x'.repeat(65)]) {
    await assert.rejects(control.start({ baseName }, never), { code: 'bad-parameter' }, baseName)
  }
  assert.deepEqual([control.report().state, await stored()], ['idle', []])
})

test('a driver that cannot start leaves no capture, says why, and may be tried again', async () => {
  await using control = await open()
  driver.refusal = new Error('no such interface')
  await assert.rejects(control.start({ baseName: 'a' }, never), /no such interface/)
  assert.deepEqual([control.report().state, control.report().message], ['error', 'no such interface'])
  assert.deepEqual(await stored(), [])
  await assert.rejects(control.stop(false, never), { code: 'capture-not-running' })
  driver.refusal = undefined
  assert.equal((await control.start({ baseName: 'a' }, never)).state, 'running')
  assert.equal(control.report().message, '')
})

test('a driver that gives up ends the capture and keeps what it captured', async () => {
  await using control = await open()
  await control.start({ baseName: 'a' }, never)
  driver.fail(new Error('the link is gone'))
  await eventually(() => control.report().name === '', { limitMs: 2_000, message: 'the capture is closed' })
  assert.deepEqual([control.report().state, control.report().message], ['error', 'the link is gone'])
  assert.deepEqual([await stored(), await writer.activeCaptures()], [['a_20261120_0541'], []])
})

test('a stop that fails can be tried again', async () => {
  await using control = await open()
  await control.start({ baseName: 'a' }, never)
  driver.refusal = new Error('disk full')
  await assert.rejects(control.stop(false, never), /disk full/)
  assert.deepEqual([control.report().state, control.report().name], ['error', 'a_20261120_0541'])
  driver.refusal = undefined
  assert.equal((await control.stop(false, never)).packets, 3n)
  assert.equal(control.report().state, 'idle')
})

test('a scheduled capture is stopped only by who says so', async () => {
  await using control = await open()
  const schedule = { name: 'trading hours', until: '17:00' }
  await control.start({ baseName: 'trade', schedule }, never)
  assert.equal(control.report().scheduleName, 'trading hours')
  await assert.rejects(control.stop(false, never), {
    code: 'capture-scheduled',
    message: /trading hours until 17:00; add Until=next/,
  })
  assert.equal(control.report().state, 'running')
  assert.equal((await control.stop(true, never)).baseName, 'trade')
})

test('a capture goes on after a restart, under its name and from its start', async () => {
  {
    await using control = await open()
    await control.start({ baseName: 'a' }, never)
  }
  assert.deepEqual(driver.calls, ['start a_20261120_0541', 'stop'])
  nowNs += 3_600_000_000_000n
  await using control = await open()
  assert.deepEqual(
    [control.report().state, control.report().name, control.report().baseName, control.report().startNs],
    ['running', 'a_20261120_0541', 'a', START_NS],
  )
  await assert.rejects(control.start({ baseName: 'b' }, never), { code: 'capture-running' })
  assert.equal((await control.stop(false, never)).stopNs, nowNs)
})

test('a capture that cannot go on after a restart is closed', async () => {
  {
    await using control = await open()
    await control.start({ baseName: 'a' }, never)
  }
  driver.refusal = new Error('no such interface')
  await using control = await open()
  assert.deepEqual([control.report().state, control.report().name], ['error', ''])
  assert.deepEqual([await stored(), await writer.activeCaptures()], [['a_20261120_0541'], []])
})

test('who no longer waits for its turn starts nothing', async () => {
  await using control = await open()
  const gone = AbortSignal.abort(new Error('gone'))
  await assert.rejects(control.start({ baseName: 'a' }, gone), /gone/)
  assert.deepEqual([control.report().state, await stored()], ['idle', []])
})
