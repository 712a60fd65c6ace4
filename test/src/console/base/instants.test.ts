import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { durationText, instantText, typedInstant, zoneText } from '../../../../src/console/base/instants.ts'

const NS = 1_793_610_060_123_456_789n

describe('an instant', () => {
  test('is written to the nanosecond, in UTC and in a zone', () => {
    assert.equal(instantText(NS, 'UTC'), '2026-11-02 09:01:00.123456789')
    assert.equal(instantText(NS, 'Europe/Berlin', 3), '2026-11-02 10:01:00.123')
    assert.equal(instantText(NS, 'Asia/Kolkata', 0), '2026-11-02 14:31:00')
    assert.equal(zoneText('UTC', NS), 'UTC')
    assert.equal(zoneText('Europe/Berlin', NS), 'Europe/Berlin (UTC+01:00)')
  })

  test('is read back as it was written, in summer and winter', () => {
    for (const zone of ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata'])
      for (const ns of [NS, NS - 120n * 86_400_000_000_000n])
        assert.equal(typedInstant(instantText(ns, zone), zone), String(ns), zone)
  })

  test('that the API reads by itself is left as it was typed', () => {
    for (const text of ['-15m', 'now', '2026-11-02T09:01:00Z', '1793610060', 'nonsense'])
      assert.equal(typedInstant(` ${text} `, 'Europe/Berlin'), text)
  })
})

test('a length of time has its two largest units, or four figures', () => {
  const texts = [
    1n,
    1_500n,
    2_000_000n,
    1_500_000_000n,
    61_000_000_000n,
    3_600_000_000_000n,
    90_000_000_000_000n,
  ]
  assert.deepEqual(texts.map(durationText), [
    '1 ns',
    '1.5 µs',
    '2 ms',
    '1.5 s',
    '1 min 1 s',
    '1 h',
    '1 d 1 h',
  ])
  assert.equal(durationText(-1_500n), '-1.5 µs')
})
