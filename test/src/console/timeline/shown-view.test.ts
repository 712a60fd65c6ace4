import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endingAt, givenView } from '../../../../src/console/timeline/shown-view.ts'

test('an address shows the time that it names, or what it has selected, or nothing', () => {
  const selected = { TSBegin: '1000000', TSEnd: '2000000' }
  assert.deepEqual(givenView({ ...selected, 'view-from': '5', 'view-to': '50' }), { fromNs: 5n, toNs: 50n })
  assert.deepEqual(givenView(selected), { fromNs: 900_000n, toNs: 2_100_000n })
  assert.deepEqual(givenView({ ...selected, 'view-from': '50', 'view-to': '5' }), givenView(selected))
  assert.equal(givenView({ 'view-from': '5', 'view-to': 'x' }), undefined)
})

test('what follows now stays as long as it is', () => {
  assert.deepEqual(endingAt({ fromNs: 5n, toNs: 15n }, 100n), { fromNs: 90n, toNs: 100n })
})
