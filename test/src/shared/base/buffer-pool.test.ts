import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BufferPool } from '../../../../src/shared/base/buffer-pool.ts'

test('what was given back is taken again, by size', () => {
  const pool = new BufferPool(100)
  const [small, large] = [pool.take(10), pool.take(60)]
  assert.equal(pool.takenBytes, 70)
  pool.give(small)
  pool.give(large)
  assert.equal(pool.takenBytes, 0)
  assert.equal(pool.take(60), large)
  assert.notEqual(pool.take(60), large)
  assert.equal(pool.take(10), small)
})

test('keeps no more than its limit', () => {
  const pool = new BufferPool(100)
  const [one, other] = [pool.take(60), pool.take(60)]
  pool.give(one)
  pool.give(other)
  assert.equal(pool.take(60), one)
  assert.notEqual(pool.take(60), other)
})
