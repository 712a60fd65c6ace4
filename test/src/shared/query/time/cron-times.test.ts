// When schedules are due, including the days on which clocks change.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type CronRule,
  followingCronMs,
  nextCronMs,
} from '../../../../../src/shared/query/time/cron-times.ts'

/** The times after `from`, each found from the previous one. */
function times(rule: CronRule, from: string, count: number): readonly string[] {
  let atMs = Date.parse(from)
  return Array.from({ length: count }, () => {
    atMs = followingCronMs(rule, atMs)
    return new Date(atMs).toISOString().slice(0, 16)
  })
}

describe('the times of a cron expression', () => {
  test('count in their zone', () => {
    assert.deepEqual(times({ cron: '30 9 * * mon', cronZone: 'Asia/Kolkata' }, '2026-11-23T00:00:00Z', 2), [
      '2026-11-23T04:00',
      '2026-11-30T04:00',
    ])
  })

  test('are after the given time, never at it', () => {
    const hourly = { cron: '0 * * * *', cronZone: 'UTC' }
    assert.equal(nextCronMs(hourly, Date.parse('2026-11-23T10:00:00Z')), Date.parse('2026-11-23T11:00:00Z'))
    assert.equal(
      nextCronMs(hourly, Date.parse('2026-11-23T10:59:59.999Z')),
      Date.parse('2026-11-23T11:00:00Z'),
    )
  })

  test('of every hour continue evenly across both changes of the clock', () => {
    const hourly = { cron: '5 * * * *', cronZone: 'Europe/Berlin' }
    assert.deepEqual(times(hourly, '2026-03-29T00:00:00Z', 3), [
      '2026-03-29T00:05',
      '2026-03-29T01:05',
      '2026-03-29T02:05',
    ])
    assert.deepEqual(times(hourly, '2026-10-24T23:30:00Z', 3), [
      '2026-10-25T00:05',
      '2026-10-25T01:05',
      '2026-10-25T02:05',
    ])
  })

  test('in the hour that is left out are an hour later, once', () => {
    assert.deepEqual(
      times({ cron: '30 2 * * *', cronZone: 'Europe/Berlin' }, '2026-03-28T02:00:00Z', 2),
      ['2026-03-29T01:30', '2026-03-30T00:30'],
      '03:30 on the day of the change',
    )
  })

  test('in the hour that comes twice are in the first one alone', () => {
    assert.deepEqual(times({ cron: '30 2 * * *', cronZone: 'Europe/Berlin' }, '2026-10-24T20:00:00Z', 2), [
      '2026-10-25T00:30',
      '2026-10-26T01:30',
    ])
  })

  test('continue if the parser finds nothing after a time at which a clock is put back by half an hour', () => {
    const daily = { cron: '15 1 * * *', cronZone: 'Australia/Lord_Howe' }
    assert.throws(() => nextCronMs(daily, Date.parse('2026-04-04T14:15:00Z')), { code: 'bad-parameter' })
    assert.deepEqual(times(daily, '2026-04-04T00:00:00Z', 2), ['2026-04-04T14:15', '2026-04-05T14:45'])
  })

  test('continue on the next day if it finds nothing an hour later either', () => {
    const daily = { cron: '0 2 * * *', cronZone: 'Australia/Lord_Howe' }
    assert.deepEqual(times(daily, '2026-04-04T10:00:00Z', 1), ['2026-04-05T15:30'])
  })
})

describe('a cron expression is refused', () => {
  for (const [why, cron] of [
    ['whose day never comes', '0 0 30 2 *'],
    ['whose days never come', '0 0 31 4,6 *'],
    ['with a minute that no hour has', '61 * * * *'],
    ['with a step of nothing', '*/0 * * * *'],
    ['of other words', 'a b c d e'],
    ['that leaves the minute to chance', 'H * * * *'],
    ['that leaves a part of it to chance', '0 1,H(1-3) * * *'],
  ])
    test(why, () => {
      assert.throws(() => nextCronMs({ cron: cron ?? '', cronZone: 'UTC' }, 0), {
        code: 'bad-parameter',
        message: /^Cron /,
      })
    })

  test('but not for the H of a day', () => {
    assert.equal(nextCronMs({ cron: '0 0 * * THU', cronZone: 'UTC' }, 0), Date.UTC(1970, 0, 8))
  })
})
