import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReadSize } from '../../../src/device/read-size.ts'

const LIMITS = { leastBytes: 64, mostBytes: 512 }

test('a full read doubles the next buffer, up to the limit', () => {
  const size = new ReadSize(LIMITS)
  const sizes = [64, 128, 256, 512, 512].map((bytes) => {
    size.hasRead(bytes, bytes)
    return size.bytes
  })
  assert.deepEqual(sizes, [128, 256, 512, 512, 512])
})

test('eight reads in a row that a quarter would have held halve it, a larger one between them does not', () => {
  const size = new ReadSize(LIMITS)
  for (const bytes of [64, 128]) size.hasRead(bytes, bytes)
  for (let read = 0; read < 7; read++) size.hasRead(64, 256)
  size.hasRead(65, 256)
  for (let read = 0; read < 7; read++) size.hasRead(64, 256)
  assert.equal(size.bytes, 256)
  size.hasRead(64, 256)
  assert.equal(size.bytes, 128)
})

test('never below the least, and back to it when nobody took the bytes for a second', () => {
  const size = new ReadSize(LIMITS)
  for (let read = 0; read < 20; read++) size.hasRead(1, 64)
  assert.equal(size.bytes, 64)
  for (const bytes of [64, 128, 256]) size.hasRead(bytes, bytes)
  size.hasStalled(999)
  assert.equal(size.bytes, 512)
  size.hasStalled(1_000)
  assert.equal(size.bytes, 64)
  // The buffer that was taken before the stall is filled by what waited meanwhile.
  size.hasRead(512, 512)
  assert.equal(size.bytes, 128)
})
