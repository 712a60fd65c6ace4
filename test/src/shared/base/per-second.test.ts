import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PerSecond } from '../../../../src/shared/base/per-second.ts'

test('accepts a limited number per second, and reports how many were dropped before the next one', () => {
  const limit = new PerSecond(2)
  const took = [0, 1, 2, 999, 1_000, 1_001, 1_002].map((nowMs) => limit.take(nowMs))
  assert.deepEqual(took, [0, 0, undefined, undefined, 2, 0, undefined])
  limit.leaveOut(3)
  assert.equal(limit.take(3_000), 4)
})
