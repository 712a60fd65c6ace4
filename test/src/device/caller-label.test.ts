import assert from 'node:assert/strict'
import { test } from 'node:test'
import { callerLabel } from '../../../src/device/caller-label.ts'

test('a user has one label, whatever the name holds, and another user another', () => {
  const names = ['ann', 'bob', '', 'Ünal', 'a, b', 'x'.repeat(1_000)]
  const labels = names.map(callerLabel)
  assert.equal(new Set(labels).size, names.length)
  assert.deepEqual(labels, names.map(callerLabel))
  for (const label of labels) assert.match(label, /^[0-9a-f]{16}$/)
})
