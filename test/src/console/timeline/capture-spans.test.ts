import assert from 'node:assert/strict'
import { test } from 'node:test'
import { spansOf } from '../../../../src/console/timeline/capture-spans.ts'

test('captures without times from their device have no place, and hide no others', () => {
  const known = { Device: 'lon1', StreamName: 'a', StartTS: '5', EndTS: '9', IsActive: true }
  const spans = spansOf([
    { Device: 'old', StreamName: 'b' },
    { ...known, PacketCnt: '3', ByteCnt: '400' },
    { Device: 'old', StreamName: 'c', StartTS: '7' },
  ])
  assert.deepEqual(
    spans.map(({ name, fromNs, toNs, packets }) => [name, fromNs, toNs, packets]),
    [
      ['a', 5n, 9n, '3'],
      ['c', 7n, 7n, null],
    ],
  )
})
