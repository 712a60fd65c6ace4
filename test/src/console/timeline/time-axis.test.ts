import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { instantText, type Zone } from '../../../../src/console/base/instants.ts'
import { timeAxis } from '../../../../src/console/timeline/time-axis.ts'

const HOUR_NS = 3_600_000_000_000n
const FROM_NS = 1_793_610_000_000_000_001n

function axis(fromNs: bigint, spanNs: bigint, { zone, count }: { zone: Zone; count: number }) {
  const { ticks, dates } = timeAxis({ fromNs, toNs: fromNs + spanNs }, zone, count)
  return {
    ticks,
    labels: ticks.map(({ label }) => label),
    dates: dates.map(({ text, zone: offset }) => `${text} ${offset}`),
  }
}

/** Midnight of the day, in UTC. */
function day(text: string): bigint {
  return BigInt(Date.parse(text)) * 1_000_000n
}

describe('the axis of the timeline', () => {
  test('has marks at round times of the zone, and says their dates from its left edge on', () => {
    const hour = axis(FROM_NS, HOUR_NS, { zone: 'UTC', count: 6 })
    assert.deepEqual(hour.labels, ['09:10', '09:20', '09:30', '09:40', '09:50', '10:00'])
    assert.deepEqual(hour.dates, ['2026-11-02 UTC'])
    const days = axis(FROM_NS, 48n * HOUR_NS, { zone: 'Asia/Kolkata', count: 4 })
    assert.deepEqual(days.labels, ['00:00', '12:00', '00:00', '12:00'])
    assert.deepEqual(days.dates, ['2026-11-02 UTC+05:30', '2026-11-03 UTC+05:30', '2026-11-04 UTC+05:30'])
  })

  test('below a second labels are parts of the minute above them', () => {
    const { labels, dates } = axis(FROM_NS, 1_000_000n, { zone: 'UTC', count: 2 })
    assert.deepEqual(labels, ['00.0005', '00.0010'])
    assert.deepEqual(dates, ['2026-11-02 09:00 UTC'])
  })

  test('from a day on the labels are the dates, and only the zone is above them', () => {
    const { labels, dates } = axis(FROM_NS, 72n * HOUR_NS, { zone: 'Europe/Berlin', count: 3 })
    assert.deepEqual(labels, ['2026-11-03', '2026-11-04', '2026-11-05'])
    assert.deepEqual(dates, [' Europe/Berlin'])
  })

  test('stays at round times when the clocks are put forward, and leaves out what they do not show', () => {
    const hours = axis(day('2026-03-29') - 1n, 4n * HOUR_NS, { zone: 'Europe/Berlin', count: 4 })
    assert.deepEqual(hours.labels, ['01:00', '03:00', '04:00', '05:00'])
    const two = axis(day('2026-03-28T22:30Z'), 8n * HOUR_NS, { zone: 'Europe/Berlin', count: 4 })
    assert.deepEqual(two.labels, ['00:00', '04:00', '06:00', '08:00'])
  })

  test('stays at round times when the clocks are put back, and shows the offset before and after', () => {
    const hours = axis(day('2026-10-25') - 1n, 3n * HOUR_NS, { zone: 'Europe/Berlin', count: 3 })
    assert.deepEqual(hours.labels, ['02:00', '02:00', '03:00'])
    const days = axis(day('2026-10-24T12:00Z'), 48n * HOUR_NS, { zone: 'Europe/Berlin', count: 8 })
    assert.deepEqual(days.labels, ['18:00', '00:00', '06:00', '12:00', '18:00', '00:00', '06:00', '12:00'])
    assert.deepEqual(days.dates, [
      '2026-10-24 UTC+02:00',
      '2026-10-25 UTC+02:00',
      '2026-10-25 UTC+01:00',
      '2026-10-26 UTC+01:00',
    ])
  })

  test('continues if a day has no midnight', () => {
    // Clocks in Havana show 01:00 after 23:59:59.
    const { ticks } = axis(day('2026-03-07'), 72n * HOUR_NS, { zone: 'America/Havana', count: 3 })
    assert.deepEqual(
      ticks.map(({ ns }) => instantText(ns, 'America/Havana', 0)),
      ['2026-03-07 00:00:00', '2026-03-09 00:00:00'],
    )
  })
})
