import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  CAPTURE_DAYS,
  nextRun,
  nextTimeOfDay,
  overlappingRows,
  runAt,
  type ScheduleRow,
} from '../../../appliance/settings/schedule-rows.ts'
import { localTimeAt } from '../../../src/shared/query/time/local-time.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const ALL = CAPTURE_DAYS
const WORKDAYS = ALL.slice(1, 6)
const row = (start: string, stop: string, more: Partial<ScheduleRow> = {}): ScheduleRow => ({
  name: 'row',
  start,
  stop,
  days: ALL,
  zone: 'UTC',
  ...more,
})
const at = (text: string): number => Date.parse(text)
const text = (ms: number | undefined): string =>
  ms === undefined || !Number.isFinite(ms) ? String(ms) : new Date(ms).toISOString().slice(0, 19)
const runText = (rows: readonly ScheduleRow[], ms: number): string => {
  const run = runAt(rows, ms)
  return run === undefined ? 'none' : `${text(run.startMs)} ${text(run.endMs)}`
}

describe('a run', () => {
  test('holds its start, and not its stop', () => {
    const rows = [row('08:00:00', '17:30:00', { days: WORKDAYS })]
    const run = '2026-11-20T08:00:00 2026-11-20T17:30:00'
    assert.equal(runText(rows, at('2026-11-20T07:59:59.999Z')), 'none')
    assert.equal(runText(rows, at('2026-11-20T08:00:00Z')), run)
    assert.equal(runText(rows, at('2026-11-20T17:29:59.999Z')), run)
    assert.equal(runText(rows, at('2026-11-20T17:30:00Z')), 'none')
    assert.equal(runText(rows, at('2026-11-21T12:00:00Z')), 'none', 'Saturday')
  })

  test('goes over midnight on the day that it began', () => {
    const rows = [row('22:00:00', '02:00:00', { days: ['fri'] })]
    const run = '2026-11-20T22:00:00 2026-11-21T02:00:00'
    assert.equal(runText(rows, at('2026-11-21T01:59:59Z')), run)
    assert.equal(runText(rows, at('2026-11-20T01:00:00Z')), 'none', 'Thursday is not in it')
  })

  test('lasts a day when start and stop are the same', () => {
    const rows = [row('08:00:00', '08:00:00', { days: ['fri'] })]
    assert.equal(runText(rows, at('2026-11-21T07:59:59Z')), '2026-11-20T08:00:00 2026-11-21T08:00:00')
  })

  test('of days that adjoin is one run; of all days it never ends', () => {
    const work = row('00:00:00', '24:00:00', { days: WORKDAYS })
    assert.equal(runText([work], at('2026-11-18T12:00:00Z')), '2026-11-18T00:00:00 2026-11-21T00:00:00')
    for (const always of [row('00:00:00', '24:00:00'), row('06:00:00', '06:00:00')]) {
      assert.equal(runAt([always], at('2026-11-18T12:00:00Z'))?.endMs, Number.POSITIVE_INFINITY)
    }
  })

  test('follows the clock of its zone', () => {
    const rows = [row('08:00:00', '17:00:00', { zone: 'America/New_York' })]
    assert.equal(runText(rows, at('2026-11-20T13:00:00Z')), '2026-11-20T13:00:00 2026-11-20T22:00:00')
    assert.equal(runText(rows, at('2026-07-20T12:00:00Z')), '2026-07-20T12:00:00 2026-07-20T21:00:00')
  })

  test('on the days when the clock changes', () => {
    const zone = 'America/New_York'
    // 2026-03-08: 02:00 EST is 03:00 EDT. 2026-11-01: 02:00 EDT is 01:00 EST.
    const inGap = row('02:15:00', '02:45:00', { zone })
    assert.equal(text(nextRun(inGap, at('2026-03-08T00:00:00-05:00'))?.startMs), '2026-03-09T06:15:00')
    const overGap = row('01:30:00', '02:30:00', { zone })
    assert.equal(
      runText([overGap], at('2026-03-08T01:45:00-05:00')),
      '2026-03-08T06:30:00 2026-03-08T07:00:00',
    )
    const overBack = row('00:30:00', '01:30:00', { zone })
    assert.equal(
      runText([overBack], at('2026-11-01T01:15:00-04:00')),
      '2026-11-01T04:30:00 2026-11-01T05:30:00',
    )
    assert.equal(runText([overBack], at('2026-11-01T01:15:00-05:00')), 'none', 'the second 01:15')
    assert.equal(
      runText([row('00:00:00', '24:00:00', { zone, days: ['sun'] })], at('2026-11-01T12:00:00Z')),
      '2026-11-01T04:00:00 2026-11-02T05:00:00',
    )
  })
})

test('the next run is the first that starts later', () => {
  const work = row('08:00:00', '17:00:00', { days: WORKDAYS })
  assert.equal(text(nextRun(work, at('2026-11-20T07:00:00Z'))?.startMs), '2026-11-20T08:00:00')
  assert.equal(text(nextRun(work, at('2026-11-20T08:00:00Z'))?.startMs), '2026-11-23T08:00:00')
  const weekly = row('08:00:00', '17:00:00', { days: ['fri'] })
  assert.equal(text(nextRun(weekly, at('2026-11-20T08:00:00Z'))?.startMs), '2026-11-27T08:00:00')
})

describe('a time of day', () => {
  test('is the next one, once a day whatever the clock does', () => {
    const zone = 'America/New_York'
    const next = (time: string, from: string): string => text(nextTimeOfDay(time, zone, at(from)))
    assert.equal(next('00:00:00', '2026-11-20T04:59:59Z'), '2026-11-20T05:00:00')
    assert.equal(next('00:00:00', '2026-11-20T05:00:00Z'), '2026-11-21T05:00:00')
    assert.equal(next('02:30:00', '2026-03-08T01:00:00-05:00'), '2026-03-08T07:00:00', 'skipped by the clock')
    assert.equal(next('01:30:00', '2026-11-01T01:30:00-04:00'), '2026-11-02T06:30:00', 'shown twice')
  })
})

describe('rows that overlap', () => {
  const names = (rows: readonly ScheduleRow[]): string[] | undefined =>
    overlappingRows(rows, at('2026-11-20T00:00:00Z'))?.map(({ name }) => name)

  test('are found, also over midnight and the end of the week', () => {
    const a = row('08:00:00', '12:00:00', { name: 'a' })
    assert.equal(names([a, row('12:00:00', '13:00:00', { name: 'b' })]), undefined)
    assert.deepEqual(names([a, row('11:59:59', '13:00:00', { name: 'b' })]), ['a', 'b'])
    const night = row('23:00:00', '01:00:00', { name: 'night', days: ['sat'] })
    assert.deepEqual(names([row('00:30:00', '02:00:00', { name: 'b', days: ['sun'] }), night]), [
      'night',
      'b',
    ])
    assert.equal(names([row('00:30:00', '02:00:00', { name: 'b', days: ['sat'] }), night]), undefined)
    assert.deepEqual(names([a, row('00:00:00', '24:00:00', { name: 'b' })])?.sort(), ['a', 'b'])
  })

  test('for some weeks of the year only, because their zones change their clocks on different days', () => {
    // Five hours apart, but four in the weeks when only one of the zones has changed.
    const newYork = row('08:00:00', '09:00:00', { name: 'us', zone: 'America/New_York' })
    const london = (start: string, stop: string) => row(start, stop, { name: 'uk', zone: 'Europe/London' })
    assert.deepEqual(names([newYork, london('12:00:00', '12:30:00')]), ['us', 'uk'])
    assert.equal(names([newYork, london('11:00:00', '12:00:00')]), undefined)
  })
})

const random = seededRandom()
test(`runs are those of a clock that is watched second by second (SEED=${random.seed})`, () => {
  const pad = (value: number): string => String(value).padStart(2, '0')
  const zones = ['UTC', 'America/New_York', 'Europe/London', 'Asia/Kolkata', 'Australia/Lord_Howe']
  for (let round = 0; round < 60; round++) {
    const times = [random.integer(0, 23), random.integer(0, 24)] as const
    const rule = row(`${pad(times[0])}:00:00`, `${pad(times[1])}:00:00`, {
      zone: random.pick(zones),
      days: ALL.filter(() => random.integer(0, 1) === 1),
    })
    // Away from clock changes, local time alone decides: a row runs in these hours of these days.
    const fromMs = at('2026-06-10T00:00:00Z') + random.integer(0, 7 * 86_400) * 1_000
    for (let hours = 0; hours < 48; hours++) {
      const ms = fromMs + hours * 3_600_000
      assert.equal(runAt([rule], ms) !== undefined, isOnWall(rule, ms), `${JSON.stringify(rule)} ${text(ms)}`)
    }
  }
})

function isOnWall(rule: ScheduleRow, ms: number): boolean {
  const local = localTimeAt(ms, rule.zone)
  const today = new Date(Date.UTC(local.year, local.month - 1, local.day)).getUTCDay()
  const has = (weekday: number): boolean => rule.days.includes(CAPTURE_DAYS[(weekday + 7) % 7] ?? 'sun')
  const now = local.hour * 3_600 + local.minute * 60 + local.second
  const [start = 0, stop = 0] = [rule.start, rule.stop].map((time) => Number(time.slice(0, 2)) * 3_600)
  if (stop > start) return has(today) && start <= now && now < stop
  return (has(today) && now >= start) || (has(today - 1) && now < stop)
}
