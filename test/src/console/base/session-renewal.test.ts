import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renewalMs } from '../../../../src/console/base/session-renewal.ts'

test('a session is renewed after half of its lifetime, at most every 20 s and at least every 5 minutes', () => {
  const nowMs = Date.parse('2026-11-02T09:00:00Z')
  assert.equal(renewalMs('2026-11-02T09:04:00Z', nowMs), 120_000)
  assert.equal(renewalMs('2026-11-02T17:00:00Z', nowMs), 300_000)
  assert.equal(renewalMs('2026-11-02T08:59:00Z', nowMs), 20_000, 'one that is over, by a clock that is off')
  for (const none of [null, undefined]) assert.equal(renewalMs(none, nowMs), 300_000)
})
