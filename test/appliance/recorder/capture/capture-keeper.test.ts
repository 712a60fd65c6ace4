// Schedules and rolls with a clock that the test sets, over a real store with a scripted engine.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { captureStage } from '../../../support/live/capture-stage.ts'
import { scriptedStream } from '../../../support/live/scripted-engine.ts'

const never = new AbortController().signal
const ALL = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']
const WORKDAYS = ALL.slice(0, 5)
const row = (name: string, start: string, stop: string, days = ALL, zone = 'UTC') => ({
  name,
  start,
  stop,
  days,
  zone,
})
const HOURS = row('trading', '08:00:00', '17:00:00', WORKDAYS)
const MINUTE_MS = 60_000

describe('a schedule', () => {
  test('starts and stops a capture by the clock', async () => {
    await using stage = await captureStage({ at: '2026-11-20T07:59:00Z', config: { schedule: [HOURS] } })
    assert.equal(stage.control.report().state, 'idle')
    await stage.pass(MINUTE_MS)
    const { state, name, scheduleName } = stage.control.report()
    assert.deepEqual([state, name, scheduleName], ['running', 'trading_20261120_0800', 'trading'])
    await stage.setWall('2026-11-20T16:59:59.999Z')
    assert.equal(stage.control.report().state, 'running')
    await stage.setWall('2026-11-20T17:00:00Z')
    assert.equal(stage.control.report().state, 'idle')
    assert.equal((await stage.record('trading_20261120_0800')).state, 'closed')
    await stage.setWall('2026-11-23T08:00:00Z')
    assert.equal(stage.control.report().name, 'trading_20261123_0800', 'not on the days between')
  })

  test('is caught up with by a recorder that starts in the middle of a run', async () => {
    await using stage = await captureStage({ at: '2026-11-20T12:34:00Z', config: { schedule: [HOURS] } })
    assert.equal(stage.control.report().name, 'trading_20261120_1234')
  })

  test('follows a clock that is set forward into a run, and back out of it', async () => {
    await using stage = await captureStage({ at: '2026-11-20T06:00:00Z', config: { schedule: [HOURS] } })
    await stage.setWall('2026-11-20T09:00:00Z')
    assert.equal(stage.control.report().state, 'running')
    await stage.setWall('2026-11-20T07:00:00Z')
    assert.equal(stage.control.report().state, 'idle')
    await stage.setWall('2026-11-20T09:00:00Z')
    assert.equal(stage.control.report().name, 'trading_20261120_0900_00')
  })

  test('keeps its hours when the clocks change', async () => {
    const schedule = [row('night', '22:00:00', '03:30:00', ALL, 'America/New_York')]
    await using stage = await captureStage({ at: '2026-03-08T02:59:59Z', config: { schedule } })
    assert.equal(stage.control.report().state, 'idle')
    await stage.pass(1_000)
    assert.equal(stage.control.report().state, 'running')
    await stage.setWall('2026-03-08T07:29:59Z')
    assert.equal(stage.control.report().state, 'running', '03:29:59, an hour earlier than on other days')
    await stage.pass(1_000)
    assert.equal(stage.control.report().state, 'idle')
  })

  test('of always never stops', async () => {
    const schedule = [row('always', '00:00:00', '24:00:00')]
    await using stage = await captureStage({ at: '2026-11-20T12:00:00Z', config: { schedule } })
    const { name } = stage.control.report()
    for (let day = 21; day < 30; day++) await stage.setWall(`2026-11-${day}T00:00:00Z`)
    assert.equal(stage.control.report().name, name)
    assert.deepEqual(await stage.captures(), [name])
  })

  test('is not stopped by capture_stop except until its next run; also across a restart', async () => {
    await using stage = await captureStage({ at: '2026-11-20T09:00:00Z', config: { schedule: [HOURS] } })
    await assert.rejects(stage.control.stop(false, never), {
      code: 'capture-scheduled',
      message: /trading until Fri Nov 20 17:00:00 2026 UTC; add Until=next/,
    })
    assert.equal((await stage.control.stop(true, never)).baseName, 'trading')
    await stage.pass(MINUTE_MS)
    assert.deepEqual([stage.control.report().state, stage.control.report().skippedRow], ['idle', 'trading'])
    await stage.restart('killed')
    await stage.pass(MINUTE_MS)
    assert.equal(stage.control.report().state, 'idle')
    await stage.setWall('2026-11-23T08:00:00Z')
    assert.deepEqual([stage.control.report().state, stage.control.report().skippedRow], ['running', ''])
  })

  test('of always that is stopped begins again at its next day', async () => {
    const schedule = [row('always', '00:00:00', '24:00:00')]
    await using stage = await captureStage({ at: '2026-11-20T12:00:00Z', config: { schedule } })
    await assert.rejects(stage.control.stop(false, never), {
      message: /runs by the schedule row always; add Until=next/,
    })
    await stage.control.stop(true, never)
    await stage.setWall('2026-11-20T23:59:59Z')
    assert.equal(stage.control.report().state, 'idle')
    await stage.pass(1_000)
    assert.equal(stage.control.report().name, 'always_20261121_0000')
  })

  test('waits for a capture that was started by command, and takes over when that is stopped', async () => {
    await using stage = await captureStage({ at: '2026-11-20T07:00:00Z', config: { schedule: [HOURS] } })
    const { name } = await stage.control.start({ baseName: 'mine' }, never)
    assert.equal(stage.control.report().waitingRow, '')
    await stage.setWall('2026-11-20T08:00:00Z')
    await stage.pass(250)
    assert.deepEqual([stage.control.report().name, stage.control.report().waitingRow], [name, 'trading'])
    await stage.control.stop(false, never)
    await stage.pass(250)
    assert.equal(stage.control.report().scheduleName, 'trading')
    assert.deepEqual(
      stage.events.map((event) => event.split(' ')[0]),
      ['capture-started', 'schedule-waiting', 'capture-stopped', 'capture-started'],
    )
  })

  test('of two rows that adjoin goes over without a gap', async () => {
    const schedule = [row('am', '08:00:00', '12:00:00'), row('pm', '12:00:00', '17:00:00')]
    await using stage = await captureStage({ at: '2026-11-20T09:00:00Z', config: { schedule } })
    await stage.setWall('2026-11-20T12:00:00Z')
    assert.deepEqual(
      [stage.control.report().name, stage.control.report().scheduleName],
      ['pm_20261120_1200', 'pm'],
    )
    assert.deepEqual(stage.engine.calls, ['start am_20261120_0900', 'roll pm_20261120_1200'])
    assert.equal((await stage.record('am_20261120_0900')).state, 'closed')
  })

  test('continues after a restart during a run, and is closed if the run has ended meanwhile', async () => {
    await using stage = await captureStage({ at: '2026-11-20T09:00:00Z', config: { schedule: [HOURS] } })
    await stage.restart('killed')
    const { name, scheduleName } = stage.control.report()
    assert.deepEqual([name, scheduleName], ['trading_20261120_0900', 'trading'])
    await stage.setWall('2026-11-20T16:59:00Z')
    await stage.restart('killed', () => void stage.setAway('2026-11-20T17:10:00Z'))
    assert.equal(stage.control.report().state, 'idle')
    assert.equal((await stage.record(name)).state, 'closed')
  })

  test('whose capture could not start leaves no error after its time is over', async () => {
    const refusal = new Error('no such interface')
    const at = '2026-11-20T16:59:00Z'
    await using stage = await captureStage({ at, config: { schedule: [HOURS] }, refusal })
    assert.equal(stage.control.report().state, 'error')
    await stage.setWall('2026-11-20T17:00:00Z')
    await stage.pass(3_000)
    assert.deepEqual([stage.control.report().state, stage.control.report().message], ['idle', ''])
  })

  test('whose capture cannot begin tries again every few seconds', async () => {
    await using stage = await captureStage({
      at: '2026-11-20T09:00:00Z',
      config: { schedule: [HOURS] },
      refusal: new Error('no such interface'),
    })
    assert.deepEqual(
      [stage.control.report().state, stage.control.report().message],
      ['error', 'no such interface'],
    )
    await stage.pass(3_000)
    assert.deepEqual(await stage.captures(), [])
    stage.engine.refusal = undefined
    await stage.pass(3_000)
    assert.equal(stage.control.report().name, 'trading_20261120_0900')
  })
})

describe('a roll', () => {
  test('at a time of day in the zone of the device', async () => {
    await using stage = await captureStage({
      at: '2026-11-20T12:00:00Z',
      timeZone: 'America/New_York',
      config: { roll: { at: '00:00:00' } },
    })
    await stage.control.start({ baseName: 'a' }, never)
    await stage.setWall('2026-11-21T04:59:59Z')
    assert.equal(stage.control.report().name, 'a_20261120_0700')
    await stage.setWall('2026-11-21T05:00:00Z')
    assert.equal(stage.control.report().name, 'a_20261121_0000')
    await stage.pass(250)
    assert.equal(stage.control.report().name, 'a_20261121_0000', 'once')
    await stage.setWall('2026-11-21T04:30:00Z')
    await stage.setWall('2026-11-21T05:00:01Z')
    assert.equal(stage.control.report().name, 'a_20261121_0000', 'once, also when the clock is set back')
    await stage.setWall('2026-11-22T05:00:00Z')
    assert.equal(stage.control.report().name, 'a_20261122_0000')
    assert.equal(stage.events.filter((event) => event.startsWith('capture-rolled')).length, 2)
  })

  test('at a time of day that passed while no recorder ran happens when one is back', async () => {
    await using stage = await captureStage({
      at: '2026-11-20T23:59:00Z',
      config: { roll: { at: '00:00:00' } },
    })
    await stage.control.start({ baseName: 'a' }, never)
    await stage.restart('killed', () => void stage.setAway('2026-11-21T00:01:00Z'))
    assert.equal(stage.control.report().name, 'a_20261121_0001')
    assert.equal((await stage.record('a_20261120_2359')).state, 'closed')
  })

  test('every n seconds, whatever happens to the clock', async () => {
    await using stage = await captureStage({
      at: '2026-11-20T12:00:00Z',
      config: { roll: { everySeconds: 60 } },
    })
    await stage.control.start({ baseName: 'a' }, never)
    await stage.setWall('2026-11-20T10:00:00Z')
    await stage.pass(59_000)
    assert.equal(stage.control.report().name, 'a_20261120_1200')
    await stage.pass(1_000)
    assert.equal(stage.control.report().name, 'a_20261120_1001')
    await stage.pass(30_000)
    await stage.restart('killed')
    await stage.pass(29_000)
    assert.equal(stage.control.report().name, 'a_20261120_1001', 'a restart keeps the age')
    await stage.pass(1_000)
    assert.equal(stage.control.report().name, 'a_20261120_1002')
  })

  test('every n bytes of each capture', async () => {
    const everyBytes = 2 ** 20
    await using stage = await captureStage({ at: '2026-11-20T12:00:00Z', config: { roll: { everyBytes } } })
    await stage.control.start({ baseName: 'a' }, never)
    stage.engine.count(0, { storedBytes: BigInt(everyBytes - 1), storedPackets: 1n })
    await stage.pass(MINUTE_MS)
    assert.equal(stage.control.report().name, 'a_20261120_1200')
    stage.engine.count(0, { storedBytes: BigInt(everyBytes) })
    stage.engine.streams = [
      { ...scriptedStream(0, 1, [1n]), segments: [{ ...SEGMENT, bytes: BigInt(everyBytes) + 24n }] },
    ]
    await stage.pass(MINUTE_MS)
    assert.equal(stage.control.report().name, 'a_20261120_1202')
    await stage.pass(MINUTE_MS)
    assert.equal(stage.control.report().name, 'a_20261120_1202', 'the next one begins at 0')
  })

  test('keeps the row of the schedule', async () => {
    await using stage = await captureStage({
      at: '2026-11-20T09:00:00Z',
      config: { schedule: [HOURS], roll: { everySeconds: 600 } },
    })
    await stage.pass(10 * MINUTE_MS)
    const { name, scheduleName } = stage.control.report()
    assert.deepEqual([name, scheduleName], ['trading_20261120_0910', 'trading'])
    await assert.rejects(stage.control.stop(false, never), { code: 'capture-scheduled' })
  })

  test('that fails is retried, and the capture continues meanwhile', async () => {
    await using stage = await captureStage({
      at: '2026-11-20T12:00:00Z',
      config: { roll: { everySeconds: 60 } },
    })
    await stage.control.start({ baseName: 'a' }, never)
    stage.engine.refusal = new Error('no space left')
    await stage.pass(60_000)
    const { state, name, message } = stage.control.report()
    assert.deepEqual([state, name, message], ['running', 'a_20261120_1200', 'no space left'])
    stage.engine.refusal = undefined
    await stage.pass(3_000)
    assert.equal(stage.control.report().name, 'a_20261120_1201')
    assert.equal(stage.control.report().message, '')
  })
})

const SEGMENT = {
  number: 1,
  minNs: 1n,
  maxNs: 1n,
  packets: 1n,
  bytes: 0n,
  sideBytes: 0,
  checksum: 0,
  isFlat: false,
}

describe('a clock that is wrong for a while', () => {
  const AT = '2026-11-20T12:00:00Z'
  const JUMPED = {
    '1 h on': '2026-11-20T13:00:00Z',
    '2 d back': '2026-11-18T12:00:00Z',
    '2 d on': '2026-11-22T12:00:00Z',
    '10 y on': '2036-11-20T12:00:00Z',
    '10 y back': '2016-11-20T12:00:00Z',
  }
  for (const [name, wrong] of Object.entries(JUMPED))
    test(`${name}, neither ends, starts nor rolls a capture`, async () => {
      const noon = row('noon', '11:00:00', '12:30:00')
      const config = { schedule: [noon], roll: { at: '00:00:00', everySeconds: 86_400 } }
      await using stage = await captureStage({ at: AT, config, isClockGuarded: true })
      const captures = ['noon_20261120_1200']
      assert.deepEqual(await stage.captures(), captures)
      await stage.setWall(wrong)
      for (let second = 0; second < 30; second++) await stage.pass(1_000)
      await stage.setWall('2026-11-20T12:00:30Z')
      await stage.pass(1_000)
      assert.deepEqual([stage.control.report().state, await stage.captures()], ['running', captures])
      await stage.setWall(wrong)
      await stage.restart('killed')
      await stage.pass(1_000)
      await stage.restart('stopped', () => stage.setAway('2026-11-20T12:00:32Z'))
      await stage.pass(1_000)
      assert.deepEqual([stage.control.report().state, await stage.captures()], ['running', captures])
      await stage.pass(30 * MINUTE_MS)
      assert.equal(stage.control.report().state, 'idle', 'at the end of its row')
    })

  test('rolls by the right time, once, also when that is while it is wrong', async () => {
    for (const wrong of Object.values(JUMPED)) {
      const config = { roll: { at: '12:00:10' } }
      await using stage = await captureStage({ at: AT, config, isClockGuarded: true })
      await stage.control.start({ baseName: 'live' }, never)
      await stage.setWall(wrong)
      for (let second = 0; second < 30; second++) await stage.pass(1_000)
      assert.equal((await stage.captures()).length, 2, wrong)
      await stage.setWall('2026-11-20T12:00:30Z')
      for (let second = 0; second < 30; second++) await stage.pass(1_000)
      assert.equal((await stage.captures()).length, 2, wrong)
    }
  })

  test('is followed when it stays', async () => {
    await using stage = await captureStage({
      at: '2026-11-20T06:00:00Z',
      config: { schedule: [HOURS] },
      isClockGuarded: true,
    })
    await stage.setWall('2026-11-20T09:00:00Z')
    assert.equal(stage.control.report().state, 'idle')
    for (let minute = 0; minute <= 10; minute++) await stage.pass(MINUTE_MS)
    assert.equal(stage.control.report().state, 'running')
  })
})
