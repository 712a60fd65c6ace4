import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type CaptureRecord,
  captureRecordSchema,
  type SegmentRecord,
  toJson,
} from '../../../appliance/store/capture-record.ts'
import {
  lastRemoved,
  validPercent,
  withoutRemoved,
  withoutSegment,
} from '../../../appliance/store/trimmed-record.ts'
import { captureRecord } from '../../support/packets/capture-records.ts'

const segment = (number: number): SegmentRecord => ({
  number,
  minNs: BigInt(number) * 100n,
  maxNs: BigInt(number) * 100n + 50n,
  packets: 10n,
  bytes: 1_000n,
})
const withSegments = (...numbers: number[]): CaptureRecord =>
  captureRecord('a', {
    streams: [{ port: 2, linkType: 1, snaplen: 65_535, segments: numbers.map(segment) }],
    packets: BigInt(numbers.length) * 10n,
    bytes: BigInt(numbers.length) * 1_000n,
  })
const numbersOf = (record: CaptureRecord) => record.streams[0]?.segments.map(({ number }) => number)

test('a record says what it has lost, and is written and read with it', () => {
  const once = withoutSegment(withSegments(1, 2, 3, 4), { port: 2, segment: segment(1) })
  const twice = withoutSegment(once, { port: 2, segment: segment(2) })
  assert.deepEqual(numbersOf(twice), [3, 4])
  assert.deepEqual([twice.packets, twice.bytes], [20n, 2_000n])
  const removed = {
    packets: 20n,
    bytes: 2_000n,
    startNs: 100n,
    endNs: 251n,
    segments: [{ port: 2, number: 2 }],
  }
  assert.deepEqual(twice.removed, removed)
  assert.deepEqual(captureRecordSchema.parse(JSON.parse(toJson(twice))), twice)
  assert.deepEqual([lastRemoved(twice.removed, 2), lastRemoved(twice.removed, 0)], [2, 0])
})

test('only a whole capture is valid by 100 percent', () => {
  assert.equal(validPercent(withSegments(1)), 100)
  const trimmed = withoutSegment(withSegments(1, 2, 3, 4), { port: 2, segment: segment(1) })
  assert.equal(validPercent(trimmed), 74)
  assert.equal(validPercent({ ...trimmed, bytes: 10n ** 15n }), 99)
  assert.equal(validPercent({ ...trimmed, bytes: 0n }), 0)
})

test('a record by who knows nothing of removals brings no segment back', () => {
  const current = withoutSegment(withSegments(1, 2), { port: 2, segment: segment(1) })
  const stopped = withoutRemoved(withSegments(1, 2, 3), current)
  assert.deepEqual(numbersOf(stopped), [2, 3])
  assert.deepEqual([stopped.packets, stopped.bytes, stopped.removed], [20n, 2_000n, current.removed])
  assert.equal(withoutRemoved(current, undefined), current)
})
