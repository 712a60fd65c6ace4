import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CapfleetError } from '../../../../../src/shared/base/error.ts'
import { listTimeText, readListTimes } from '../../../../../src/shared/query/time/list-times.ts'

/** 2026-11-02 09:01:00 UTC. */
const MINUTE_NS = 1_793_610_060_000_000_000n
const CONTEXT = { zone: 'Europe/Berlin', nowNs: MINUTE_NS }

test('From and To take the forms of TSBegin and TSEnd', () => {
  for (const [text, ns] of [
    ['1793610060', MINUTE_NS],
    ['1793610060000', MINUTE_NS],
    ['1793610060000000000', MINUTE_NS],
    ['2026-11-02T09:01:00Z', MINUTE_NS],
    ['2026-11-02 10:01', MINUTE_NS],
    ['now', MINUTE_NS],
    ['-1h', MINUTE_NS - 3_600_000_000_000n],
  ] as const)
    assert.deepEqual(
      [readListTimes({ from: text }, CONTEXT).fromNs, readListTimes({ to: text }, CONTEXT).toNs],
      [ns, ns],
      text,
    )
  assert.equal(
    readListTimes({ from: 'today', to: '+10m' }, CONTEXT).toNs,
    1_793_574_000_000_000_000n + 600_000_000_000n,
  )
})

test('a zone is reported if a time was read in it, and only then', () => {
  assert.equal(readListTimes({ from: 'today' }, CONTEXT).timeZone, 'Europe/Berlin')
  assert.equal(readListTimes({ from: '-1h', to: '2026-11-02T09:01:00Z' }, CONTEXT).timeZone, undefined)
})

test('absent times are no limits', () => {
  assert.deepEqual(readListTimes({}, CONTEXT), { fromNs: undefined, toNs: undefined, timeZone: undefined })
})

test('any nanosecond that a gateway writes is read as that nanosecond', () => {
  const texts = ['1793610060123456789', '2026110209010000000'].flatMap((text) =>
    Array.from(text, (_, index) => text.slice(0, index + 1)),
  )
  for (const text of texts) {
    const ns = BigInt(text)
    assert.deepEqual(readListTimes({ from: listTimeText(ns), to: listTimeText(ns) }, CONTEXT), {
      fromNs: ns,
      toNs: ns,
      timeZone: undefined,
    })
  }
})

test('what is no time is rejected with the name of its parameter', () => {
  assert.throws(
    () => readListTimes({ from: '20261102' }, CONTEXT),
    /write the date as 2026-11-02, or append ULL/,
  )
  for (const [name, given] of [
    ['From', { from: 'soon' }],
    ['To', { to: '110000000000' }],
  ] as const)
    assert.throws(
      () => readListTimes(given, CONTEXT),
      (error) =>
        error instanceof CapfleetError && error.code === 'bad-parameter' && error.details.param === name,
    )
})
