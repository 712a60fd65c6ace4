// The state machine of a device's capture, over a real store, with an engine that the test scripts.
import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { test } from 'node:test'
import { segmentsOf } from '../../../../appliance/store/stored-capture.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { type CaptureStage, captureStage } from '../../../support/live/capture-stage.ts'
import { scriptedStream } from '../../../support/live/scripted-engine.ts'

const never = new AbortController().signal
const START_NS = 1_795_171_264_123_000_000n
const SECOND_NS = 1_000_000_000n

const stageAt = (): Promise<CaptureStage> =>
  captureStage({ at: '2026-11-20T10:41:04.123Z', timeZone: 'America/New_York' })

test('starts under a name with the local time, and stops with exact counts', async () => {
  await using stage = await stageAt()
  const { control, engine } = stage
  assert.deepEqual([control.report().state, control.report().name], ['idle', ''])
  const report = await control.start({ baseName: 'trade' }, never)
  assert.deepEqual(
    [report.state, report.name, report.baseName, report.startNs, report.ports],
    ['running', 'trade_20261120_0541', 'trade', START_NS, [0, 3]],
  )
  const [active] = await stage.writer.activeCaptures()
  assert.deepEqual([active?.name, active?.state, active?.type], ['trade_20261120_0541', 'active', 'capture'])
  await stage.pass(60_000)
  engine.count(3, { ringDrops: 5n, diskDrops: 2n })
  engine.streams = [scriptedStream(3, 1, [3n, 4n], START_NS)]
  const stopped = await control.stop(false, never)
  assert.deepEqual(stopped, {
    name: 'trade_20261120_0541',
    baseName: 'trade',
    stopNs: START_NS + 60n * SECOND_NS,
    packets: 7n,
    bytes: 48n + 7n * 116n,
    drops: 7n,
  })
  assert.equal(control.report().state, 'idle')
  assert.deepEqual(engine.calls, ['start trade_20261120_0541', 'stop', 'close'])
  const record = await stage.record('trade_20261120_0541')
  assert.deepEqual(
    [record.state, record.packets, record.startNs, record.endNs, record.drops, record.table.ports.length],
    ['closed', 7n, START_NS, stopped.stopNs, { ring: 5n, disk: 2n }, 1],
  )
  assert.deepEqual(stage.events, [
    'capture-started trade_20261120_0541',
    'capture-stopped trade_20261120_0541',
  ])
})

test('a second start in the same minute gets the second, a third a number', async () => {
  await using stage = await stageAt()
  const names: string[] = []
  for (let round = 0; round < 4; round++) {
    names.push((await stage.control.start({ baseName: 'x' }, never)).name)
    await stage.control.stop(false, never)
  }
  assert.deepEqual(names, [
    'x_20261120_0541',
    'x_20261120_0541_04',
    'x_20261120_0541_04_2',
    'x_20261120_0541_04_3',
  ])
})

test('of many starts at once one wins, and the others say which', async () => {
  await using stage = await stageAt()
  const results = await Promise.allSettled(
    ['a', 'b', 'c', 'd'].map((baseName) => stage.control.start({ baseName }, never)),
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
  assert.deepEqual(await stage.captures(), ['a_20261120_0541'])
})

test('of two stops at once one wins; a start and a stop at once are done in their order', async () => {
  await using stage = await stageAt()
  const [started, stopped, second] = await Promise.allSettled([
    stage.control.start({ baseName: 'a' }, never),
    stage.control.stop(false, never),
    stage.control.stop(false, never),
  ])
  assert.deepEqual([started?.status, stopped?.status], ['fulfilled', 'fulfilled'])
  assert.ok(second?.status === 'rejected')
  assert.equal(second.reason.code, 'capture-not-running')
})

test('a bad base name is refused and changes nothing', async () => {
  await using stage = await stageAt()
  for (const baseName of ['', '.a', '../a', 'a b', 'a/b', 'ä', 'x'.repeat(65)]) {
    await assert.rejects(stage.control.start({ baseName }, never), { code: 'bad-parameter' }, baseName)
  }
  assert.deepEqual([stage.control.report().state, await stage.captures()], ['idle', []])
})

test('an engine that cannot start leaves no capture, says why, and may be tried again', async () => {
  await using stage = await stageAt()
  const { control, engine } = stage
  engine.refusal = new Error('no such interface')
  await assert.rejects(control.start({ baseName: 'a' }, never), /no such interface/)
  await assert.rejects(control.start({ baseName: 'a' }, never), /no such interface/)
  assert.deepEqual([control.report().state, control.report().message], ['error', 'no such interface'])
  assert.deepEqual(await stage.captures(), [])
  assert.deepEqual(stage.events, ['capture-failed a'], 'the same failure again is no news')
  await assert.rejects(control.stop(false, never), { code: 'capture-not-running' })
  engine.refusal = undefined
  assert.equal((await control.start({ baseName: 'a' }, never)).state, 'running')
  assert.equal(control.report().message, '')
})

test('a stop that fails can be tried again', async () => {
  await using stage = await stageAt()
  const { control, engine } = stage
  await control.start({ baseName: 'a' }, never)
  engine.refusal = new Error('disk full')
  await assert.rejects(control.stop(false, never), /disk full/)
  assert.deepEqual([control.report().state, control.report().name], ['error', 'a_20261120_0541'])
  engine.refusal = undefined
  engine.streams = [scriptedStream(0, 1, [3n])]
  assert.equal((await control.stop(false, never)).packets, 3n)
  assert.equal(control.report().state, 'idle')
})

test('finished segments come into the log while the capture runs, once each', async () => {
  await using stage = await stageAt()
  const { name } = await stage.control.start({ baseName: 'a' }, never)
  const packetsOf = async (): Promise<bigint[]> =>
    [...segmentsOf(await stage.record(name))].map(({ packets }) => packets)
  await stage.pass(1_000)
  assert.deepEqual([await packetsOf(), stage.finished()], [[], 0])
  stage.engine.streams = [scriptedStream(3, 1, [5n])]
  await stage.pass(1_000)
  assert.deepEqual([await packetsOf(), stage.finished()], [[5n], 1])
  await stage.pass(1_000)
  assert.deepEqual([await packetsOf(), stage.finished()], [[5n], 1])
  stage.engine.streams = [scriptedStream(3, 1, [5n, 6n])]
  await stage.pass(1_000)
  assert.deepEqual([await packetsOf(), stage.finished()], [[5n, 6n], 2])
  const { state, packets } = await stage.record(name)
  assert.deepEqual([state, packets], ['active', 11n])
})

test('a segment removed by the store does not reappear', async () => {
  await using stage = await stageAt()
  const { name } = await stage.control.start({ baseName: 'a' }, never)
  stage.engine.streams = [scriptedStream(0, 1, [5n, 6n])]
  await stage.pass(1_000)
  const [first] = segmentsOf(await stage.record(name))
  assert.ok(first)
  const held = stage.writer.captures.get(name)
  assert.ok(held)
  await stage.writer.dropSegments(held, [first])
  stage.engine.streams = [scriptedStream(0, 1, [5n, 6n, 7n])]
  const stopped = await stage.control.stop(false, never)
  assert.equal(stopped.packets, 18n, 'all that was captured')
  assert.deepEqual(
    [...segmentsOf(await stage.record(name))].map(({ number }) => number),
    [2, 3],
  )
  assert.equal((await stage.record(name)).packets, 13n)
})

test('a capture accepts no packets while the store has no room for them, and then continues', async () => {
  await using stage = await stageAt()
  const { control, engine } = stage
  const { name } = await control.start({ baseName: 'a' }, never)
  stage.roomProblem = new CapfleetError('store-full', 'no room is left')
  engine.streams = [scriptedStream(0, 1, [3n])]
  await stage.pass(250)
  const { state, message, name: suspended } = control.report()
  assert.deepEqual([state, message, suspended], ['error', 'no room is left', name])
  assert.deepEqual(engine.calls, [`start ${name}`, 'stop', 'close'])
  const { state: stored, packets } = await stage.record(name)
  assert.deepEqual([stored, packets], ['active', 3n])
  await stage.pass(3_000)
  assert.equal(control.report().state, 'error')
  await assert.rejects(control.start({ baseName: 'b' }, never), { code: 'capture-running' })
  stage.roomProblem = undefined
  await stage.pass(3_000)
  assert.deepEqual([control.report().state, control.report().name], ['running', name])
  assert.deepEqual(
    stage.events.filter((event) => !event.startsWith('capture-recovered')),
    [`capture-started ${name}`, `capture-failed ${name}`, `capture-resumed ${name}`],
  )
})

test('a capture that cannot end for lack of room is ended before it continues, even if there is room again', async () => {
  await using stage = await stageAt()
  const { control, engine } = stage
  const { name } = await control.start({ baseName: 'a' }, never)
  stage.roomProblem = new CapfleetError('store-full', 'no room is left')
  engine.refusal = new Error('the disk is away')
  await stage.pass(250)
  assert.deepEqual([control.report().state, control.report().message], ['error', 'no room is left'])
  stage.roomProblem = undefined
  engine.refusal = undefined
  await stage.pass(3_000)
  assert.deepEqual([control.report().state, control.report().name], ['running', name])
  assert.deepEqual(engine.calls, [`start ${name}`, 'stop', 'close', `start ${name}`])
})

test('without space nothing is started, which is an error until a stop', async () => {
  await using stage = await stageAt()
  const { control } = stage
  stage.roomProblem = new CapfleetError('store-full', 'no room is left')
  await assert.rejects(control.start({ baseName: 'a' }, never), { code: 'store-full' })
  assert.deepEqual([control.report().state, await stage.captures()], ['error', []])
  await stage.pass(60_000)
  assert.equal(control.report().state, 'error')
  await assert.rejects(control.stop(false, never), { code: 'capture-not-running' })
  assert.deepEqual([control.report().state, control.report().message], ['idle', ''])
})

test('a capture continues after a restart, with its name, start and counts', async () => {
  await using stage = await stageAt()
  const { name } = await stage.control.start({ baseName: 'a' }, never)
  stage.engine.count(0, { storedPackets: 9n, ringDrops: 4n })
  stage.engine.streams = [scriptedStream(0, 1, [9n])]
  await stage.restart('stopped', () => stage.engine.count(0, { storedPackets: 2n, ringDrops: 1n }))
  const { control } = stage
  assert.deepEqual(
    [control.report().state, control.report().name, control.report().baseName, control.report().startNs],
    ['running', name, 'a', START_NS],
  )
  await assert.rejects(control.start({ baseName: 'b' }, never), { code: 'capture-running' })
  assert.equal(control.report().counts.ringDrops, 5n, 'drops of before and of now')
  await control.stop(false, never)
  assert.deepEqual(stage.events.slice(0, 2), [`capture-started ${name}`, `capture-resumed ${name}`])
})

test('drops since the last segment are known after a restart, also without a new segment', async () => {
  await using stage = await stageAt()
  const { name } = await stage.control.start({ baseName: 'a' }, never)
  stage.engine.count(0, { ringDrops: 4n, diskDrops: 3n })
  stage.engine.streams = []
  await stage.restart('stopped', () => stage.engine.count(0, { ringDrops: 0n, diskDrops: 0n }))
  const { counts } = stage.control.report()
  assert.deepEqual([counts.drops, counts.ringDrops], [7n, 4n])
  assert.deepEqual((await stage.record(name)).drops, { ring: 4n, disk: 3n })
})

test('of two active captures, left by a kill in the middle of a roll, the newer one continues', async () => {
  await using stage = await stageAt()
  const { name: first } = await stage.control.start({ baseName: 'a' }, never)
  const older = { ...(await stage.record(first)), name: 'b_20261120_0540', baseName: 'b' }
  await stage.writer.makeCapture({ ...older, startNs: older.startNs - SECOND_NS })
  await stage.restart('killed')
  assert.equal(stage.control.report().name, first)
  const { state, endNs } = await stage.record('b_20261120_0540')
  assert.deepEqual([state, endNs], ['closed', older.endNs], 'as of its last packet')
})

test('a capture that cannot continue after a restart is retried until it does', async () => {
  await using stage = await stageAt()
  const { name } = await stage.control.start({ baseName: 'a' }, never)
  await stage.restart('killed', () => {
    stage.engine.refusal = new Error('no such interface')
  })
  const { control } = stage
  const { state, message } = control.report()
  assert.deepEqual([state, message, control.report().name], ['error', 'no such interface', name])
  await assert.rejects(control.start({ baseName: 'b' }, never), { code: 'capture-running' })
  await stage.pass(3_000)
  assert.equal(control.report().state, 'error')
  stage.engine.refusal = undefined
  await stage.pass(1_000)
  assert.equal(control.report().state, 'error', 'not all the time')
  await stage.pass(2_000)
  assert.deepEqual([control.report().state, control.report().message], ['running', ''])
  assert.equal(stage.events.filter((event) => event.startsWith('capture-failed')).length, 1)
})

test('a capture that waits to continue can be stopped', async () => {
  await using stage = await stageAt()
  const { name } = await stage.control.start({ baseName: 'a' }, never)
  await stage.restart('killed', () => {
    stage.engine.refusal = new Error('no such interface')
  })
  assert.equal((await stage.control.stop(false, never)).name, name)
  assert.equal((await stage.record(name)).state, 'closed')
  stage.engine.refusal = undefined
  await stage.pass(10_000)
  assert.equal(stage.control.report().state, 'idle')
})

test('a caller that no longer waits for its turn starts nothing', async () => {
  await using stage = await stageAt()
  const gone = AbortSignal.abort(new Error('gone'))
  await assert.rejects(stage.control.start({ baseName: 'a' }, gone), /gone/)
  assert.deepEqual([stage.control.report().state, await stage.captures()], ['idle', []])
})

test('a roll continues under a new name and closes the old capture; each has its own counts', async () => {
  await using stage = await stageAt()
  const { control, engine } = stage
  const { name: first } = await control.start({ baseName: 'a' }, never)
  await stage.pass(60_000)
  engine.count(0, { storedPackets: 10n, storedBytes: 1_160n, ringDrops: 3n })
  // The engine has written two packets for the new capture by the end of the roll.
  engine.streams = [scriptedStream(0, 1, [8n], START_NS)]
  await control.roll({ baseName: 'a' }, never)
  const { state, name, counts } = control.report()
  assert.deepEqual([state, name], ['running', 'a_20261120_0542'])
  assert.deepEqual([counts.packets, counts.bytes, counts.drops], [2n, 232n, 0n])
  const old = await stage.record(first)
  assert.deepEqual([old.state, old.packets, old.drops], ['closed', 8n, { ring: 3n, disk: 0n }])
  engine.count(0, { storedPackets: 11n, storedBytes: 1_276n, ringDrops: 4n })
  assert.deepEqual([control.report().counts.packets, control.report().counts.drops], [3n, 1n])
  engine.streams = [scriptedStream(0, 1, [3n], START_NS)]
  assert.equal((await control.stop(false, never)).packets, 3n)
  assert.deepEqual(engine.calls, ['start a_20261120_0541', 'roll a_20261120_0542', 'stop', 'close'])
})

test('a roll that fails leaves the capture running and no other one', async () => {
  await using stage = await stageAt()
  const { name } = await stage.control.start({ baseName: 'a' }, never)
  stage.engine.refusal = new Error('no space left')
  await assert.rejects(stage.control.roll({ baseName: 'a' }, never), /no space/)
  const { state, message } = stage.control.report()
  assert.deepEqual([state, stage.control.report().name, message], ['running', name, 'no space left'])
  assert.deepEqual(await stage.captures(), [name])
})

test('a disk that fails is a message and an event, not an end', async () => {
  await using stage = await stageAt()
  const { name } = await stage.control.start({ baseName: 'a' }, never)
  stage.engine.count(0, {}, { diskErrors: 1n, diskMessage: 'EIO' })
  await stage.pass(250)
  stage.engine.count(0, { diskDrops: 3n }, { diskErrors: 2n })
  await stage.pass(250)
  assert.deepEqual(
    [stage.control.report().state, stage.control.report().message],
    ['running', 'disk error: EIO'],
  )
  await stage.pass(3_000)
  assert.equal(stage.control.report().message, '')
  assert.deepEqual(stage.events.slice(1), [
    `disk-error ${name}`,
    `packets-dropped ${name}`,
    `disk-recovered ${name}`,
  ])
})

test('a port that goes down is a message and an event, and so is its return', async () => {
  await using stage = await stageAt()
  const { name } = await stage.control.start({ baseName: 'a' }, never)
  stage.engine.count(0, { isUp: false })
  await stage.pass(250)
  const { state, message } = stage.control.report()
  assert.equal(state, 'running')
  assert.match(message, /^cap0 captures nothing: its interface is down, has no carrier or is missing$/)
  await stage.pass(250)
  stage.engine.count(0, { isUp: true })
  await stage.pass(250)
  assert.equal(stage.control.report().message, '')
  assert.deepEqual(stage.events.slice(1), [`port-down ${name}`, `port-up ${name}`])
})

test('folders that are no ports do not disturb a recovery', async () => {
  await using stage = await stageAt()
  await stage.control.start({ baseName: 'a' }, never)
  await mkdir(`${stage.writer.folderOf('a_20261120_0541')}/lost+found`)
  await stage.restart('killed')
  assert.equal(stage.control.report().state, 'running')
})
