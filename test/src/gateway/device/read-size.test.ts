import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  LARGE_READS_UNTIL_BYTES,
  MERGE_READ_SIZE,
  READ_BUFFERS,
  ReadSize,
  takeReadBuffer,
} from '../../../../src/gateway/device/read-size.ts'

const LIMITS = { leastBytes: 64, mostBytes: 512 }

test('a full read doubles the next buffer, up to the limit', () => {
  const size = new ReadSize(LIMITS)
  const sizes = [64, 128, 256, 512, 512].map((bytes) => {
    readFull(size, bytes)
    return size.bytes
  })
  assert.deepEqual(sizes, [128, 256, 512, 512, 512])
})

test('eight reads in a row that a quarter would have held halve it, a larger one between them does not', () => {
  const size = new ReadSize(LIMITS)
  for (const bytes of [64, 128]) readFull(size, bytes)
  const read = (bytes: number) => size.hasPassed({ bytes, capacity: 256, heldMs: 0 })
  for (let count = 0; count < 7; count++) read(64)
  read(65)
  for (let count = 0; count < 7; count++) read(64)
  assert.equal(size.bytes, 256)
  read(64)
  assert.equal(size.bytes, 128)
})

test('never below the least, and back to it when a buffer was held for a tenth of a second', () => {
  const size = new ReadSize(LIMITS)
  for (let count = 0; count < 20; count++) size.hasPassed({ bytes: 1, capacity: 64, heldMs: 0 })
  assert.equal(size.bytes, 64)
  for (const bytes of [64, 128, 256]) readFull(size, bytes)
  readFull(size, 512, 99)
  assert.equal(size.bytes, 512)
  readFull(size, 512, 100)
  assert.equal(size.bytes, 64)
  // The buffer that was allocated before the stall is filled by the data that waited meanwhile.
  readFull(size, 512)
  assert.equal(size.bytes, 128)
})

test('when much is held, the least is taken instead of what the size says; and the size again when it is not', () => {
  const size = new ReadSize(MERGE_READ_SIZE)
  const { leastBytes, mostBytes } = MERGE_READ_SIZE
  for (let bytes = leastBytes; bytes <= mostBytes; bytes *= 2) readFull(size, bytes)
  const before = READ_BUFFERS.takenBytes
  const large = Array.from({ length: LARGE_READS_UNTIL_BYTES / mostBytes }, () => takeReadBuffer(size))
  assert.ok(large.every((buffer) => buffer.byteLength === mostBytes))
  const small = Array.from({ length: 10 }, () => takeReadBuffer(size))
  assert.equal(READ_BUFFERS.takenBytes - before, LARGE_READS_UNTIL_BYTES + 10 * leastBytes)
  for (const buffer of [...large, ...small]) READ_BUFFERS.give(buffer)
  const again = takeReadBuffer(size)
  assert.equal(again.byteLength, mostBytes)
  READ_BUFFERS.give(again)
})

function readFull(size: ReadSize, bytes: number, heldMs = 0): void {
  size.hasPassed({ bytes, capacity: bytes, heldMs })
}
