import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CapfleetError } from '../../../src/base/error.ts'
import { RecordBoundary, withoutPadding } from '../../../src/pcap/record-boundary.ts'
import { makePacket, makePcap, makeRecord } from '../../support/packets/packet-maker.ts'

const records = [makePacket(1n, 'first'), makePacket(2n, ''), makePacket(3n, 'a longer third packet')]
const file = makePcap(records)

/** Offsets at which the file could end and be whole. */
const boundaries = new Set([24])
for (const record of records) boundaries.add(Math.max(...boundaries) + makeRecord(record).byteLength)

test('knows a whole file at every offset, whatever the chunks', () => {
  for (let chunkBytes = 1; chunkBytes <= file.byteLength; chunkBytes++) {
    const boundary = new RecordBoundary('rome')
    for (let end = chunkBytes; end <= file.byteLength; end += chunkBytes) {
      boundary.feed([file.subarray(end - chunkBytes, end)])
      const where = `chunks of ${chunkBytes}, offset ${end}`
      assert.equal(boundary.atBoundary, boundaries.has(end), where)
      const ends = [0, ...boundaries].sort((a, b) => a - b)
      assert.equal(
        boundary.wholeBytes,
        ends.findLast((one) => one <= end),
        where,
      )
      const { bytesToNextRecord } = boundary
      if (bytesToNextRecord !== undefined) assert.ok(boundaries.has(end + bytesToNextRecord), where)
    }
  }
})

test('a stream that never began is not a whole file', () => {
  assert.equal(new RecordBoundary('rome').atBoundary, false)
})

test('refuses an impossible captured length with its offset, in one chunk or split', () => {
  const damaged = Buffer.concat([file, makeRecord(makePacket(4n, 'x'))])
  damaged.writeUInt32LE(262_145, file.byteLength + 8)
  for (const chunkBytes of [1, 5, damaged.byteLength]) {
    const boundary = new RecordBoundary('rome')
    assert.throws(
      () => {
        for (let start = 0; start < damaged.byteLength; start += chunkBytes) {
          boundary.feed([damaged.subarray(start, start + chunkBytes)])
        }
      },
      (error) =>
        error instanceof CapfleetError &&
        error.code === 'device-protocol' &&
        error.message.includes(`262145 captured bytes at offset ${file.byteLength}`),
    )
  }
})

test('zeros behind the records fill the file up, and are none of them', () => {
  for (const zeros of [16, 100, 5_000]) {
    const boundary = new RecordBoundary('rome', { padding: 'end' })
    boundary.feed([file, Buffer.alloc(zeros)])
    boundary.feed([Buffer.alloc(1)])
    assert.deepEqual(
      [boundary.isPadding, boundary.atBoundary, boundary.wholeBytes],
      [true, true, file.byteLength],
    )
    assert.throws(() => boundary.feed([Buffer.alloc(20), Buffer.from('x')]), /zeros instead of a record/)
  }
  const plain = new RecordBoundary('rome')
  plain.feed([file, Buffer.alloc(32)])
  assert.deepEqual([plain.isPadding, plain.wholeBytes], [false, file.byteLength + 32])
})

test('zeros that cannot be left out are refused, and with them all pieces that came together', () => {
  const fault = new RecordBoundary('rome', { padding: 'fault' })
  fault.feed([file.subarray(0, 30)])
  const { wholeBytes } = fault
  assert.throws(
    () => fault.feed([file.subarray(30), Buffer.alloc(16)]),
    /zeros instead of a record at offset/,
  )
  assert.deepEqual([fault.wholeBytes, fault.atBoundary], [wholeBytes, false])
  const end = new RecordBoundary('rome', { padding: 'end' })
  end.feed([file.subarray(0, 30)])
  assert.throws(() => end.feed([file.subarray(30), Buffer.alloc(16), Buffer.from('x')]), /zeros instead/)
  assert.deepEqual([end.wholeBytes, end.atBoundary], [wholeBytes, false])
})

test('a PCAP is cut where zeros fill it up, wherever its chunks end', async () => {
  const padded = Buffer.concat([file, Buffer.alloc(100)])
  for (const bytes of [17, 40, 1_000]) {
    const chunks = async function* () {
      for (let at = 0; at < padded.length; at += bytes) yield padded.subarray(at, at + bytes)
    }
    const kept: Uint8Array[] = []
    const read = async () => {
      for await (const chunk of withoutPadding('rome', chunks())) kept.push(chunk)
    }
    // The first of the zeros may be the end of a chunk, and are taken for a header that goes on.
    await read().catch((error: Error) => assert.match(error.message, /zeros instead of a record/))
    const got = Buffer.concat(kept)
    assert.ok(
      got.equals(file) || (got.length - file.length < 16 && got.subarray(0, file.length).equals(file)),
    )
  }
})

test('zeros of which some were taken for a record are refused', () => {
  const boundary = new RecordBoundary('rome', { padding: 'end' })
  boundary.feed([file, Buffer.alloc(7)])
  assert.equal(boundary.atBoundary, false)
  assert.throws(() => boundary.feed([Buffer.alloc(9)]), /zeros instead of a record at offset/)
})
