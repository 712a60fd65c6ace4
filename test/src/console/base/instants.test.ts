import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  durationText,
  instantOfIso,
  instantText,
  typedInstant,
  zoneText,
} from '../../../../src/console/base/instants.ts'

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

  test('that is typed in a form of the API is one of the zone that is shown', () => {
    const typed = (text: string) => typedInstant(` ${text} `, 'Europe/Berlin')
    for (const text of [
      '20261102_090100',
      '2026-11-02T09:01',
      '2026-11-02T08:01:00Z',
      '1793606460',
      '1793606460000',
    ])
      assert.equal(typed(text), '1793606460000000000', text)
    assert.equal(typedInstant('20261102_090100', 'UTC'), '1793610060000000000')
    assert.equal(typed('2026-11-02_09:01:00+01:00'), '1793606460000000000')
  })

  test('that is relative, or none, stays as it was typed', () => {
    for (const text of [
      '-15m',
      'now',
      'today',
      'yesterday',
      'nonsense',
      '20260230_000000',
      '20261102_250000',
      '',
    ])
      assert.equal(typedInstant(` ${text} `, 'Europe/Berlin'), text)
  })

  test('of an answer is read to the millisecond', () => {
    assert.equal(instantOfIso('2026-11-02T09:01:00.123Z'), 1_793_610_060_123_000_000n)
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
