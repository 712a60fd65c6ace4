import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { RecordBoundary, withoutPadding } from '../../../../src/shared/pcap/record-boundary.ts'
import { inChunks, makePacket, makePcap, makeRecord } from '../../../support/packets/packet-maker.ts'

const records = [makePacket(1n, 'first'), makePacket(2n, ''), makePacket(3n, 'a longer third packet')]
const file = makePcap(records)

const bigEndian = makePcap(records, { isBigEndian: true })

/** Offsets at which the file could end and be complete. */
const boundaries = new Set([24])
for (const record of records) boundaries.add(Math.max(...boundaries) + makeRecord(record).byteLength)

for (const [order, bytes] of [
  ['little', file],
  ['big', bigEndian],
] as const)
  test(`knows a whole ${order}-endian file at every offset, whatever the chunks`, () => {
    for (let chunkBytes = 1; chunkBytes <= bytes.byteLength; chunkBytes++) {
      const boundary = new RecordBoundary('rome')
      for (let end = chunkBytes; end <= bytes.byteLength; end += chunkBytes) {
        boundary.feed([bytes.subarray(end - chunkBytes, end)])
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
  const little = Buffer.concat([file, makeRecord(makePacket(4n, 'x'))])
  little.writeUInt32LE(262_145, file.byteLength + 8)
  const big = Buffer.concat([bigEndian, little.subarray(file.byteLength)])
  big.writeUInt32BE(262_145, file.byteLength + 8)
  for (const damaged of [little, big]) {
    for (const chunkBytes of [1, 5, damaged.byteLength]) refusesLength(damaged, chunkBytes)
  }
})

function refusesLength(damaged: Buffer, chunkBytes: number): void {
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

test('zeros after the records are padding, and not records', () => {
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

/** The output for these pieces, or the error's message and the output before it. */
function passed(boundary: RecordBoundary, pieces: readonly Buffer[]) {
  const kept: Buffer[] = []
  try {
    for (const piece of pieces) kept.push(...boundary.pass([piece]))
  } catch (error) {
    return { kept: Buffer.concat(kept), error: (error as Error).message }
  }
  return { kept: Buffer.concat(kept), error: undefined }
}

function split(bytes: Buffer, ...ends: readonly number[]): readonly Buffer[] {
  return [0, ...ends].map((end, index) => bytes.subarray(end, ends[index] ?? bytes.length))
}

/** Its second record begins with fifteen zeros. */
const nearlyZero = Buffer.concat([
  makePcap(records.slice(0, 1)),
  Buffer.concat([Buffer.alloc(15), Buffer.of(1)]),
  makeRecord(makePacket(3n, 'third')),
])

for (const [order, content] of [
  ['little', file],
  ['big', bigEndian],
  ['nearly zero', nearlyZero],
] as const)
  test(`zeros after the records are padding wherever two cuts are (${order})`, () => {
    for (const zeros of [0, 1, 7, 15, 16, 17, 40]) {
      const padded = Buffer.concat([content, Buffer.alloc(zeros)])
      for (let first = 0; first <= padded.length; first++) {
        for (let second = first; second <= padded.length; second++) {
          const where = `${zeros} zeros, cuts at ${first} and ${second}`
          const boundary = new RecordBoundary('rome', { padding: 'end' })
          const pieces = split(padded, first, second)
          const got = passed(boundary, pieces)
          assert.ok(got.error === undefined && got.kept.equals(content), where)
          assert.deepEqual([boundary.atBoundary, boundary.wholeBytes], [true, content.length], where)
        }
      }
    }
  })

test('bytes that were held back come with the next piece, and the start of the next record is reported', () => {
  for (let from = 0; from < nearlyZero.length; from++) {
    const boundary = new RecordBoundary('rome', { padding: 'end' })
    const before = Buffer.concat(boundary.pass([nearlyZero.subarray(0, from)]))
    assert.ok(nearlyZero.subarray(0, before.length).equals(before))
    assert.ok(from - before.length < 16)
    const { bytesToNextRecord, atBoundary } = boundary
    const reference = new RecordBoundary('rome')
    reference.feed([before])
    assert.deepEqual([bytesToNextRecord, atBoundary], [reference.bytesToNextRecord, reference.atBoundary])
    const after = Buffer.concat(boundary.pass([nearlyZero.subarray(from)]))
    assert.ok(Buffer.concat([before, after]).equals(nearlyZero), `cut at ${from}`)
  }
})

test('bytes that follow padding are refused wherever the cuts are, and nothing after the records passes', () => {
  const garbage = Buffer.concat([file, Buffer.alloc(20), Buffer.from('x')])
  for (let cut = 0; cut <= garbage.length; cut++) {
    const got = passed(new RecordBoundary('rome', { padding: 'end' }), split(garbage, cut))
    assert.match(got.error ?? '', /zeros instead of a record at offset/)
    assert.ok(file.subarray(0, got.kept.length).equals(got.kept))
  }
})

test('pieces without padding pass as they are, without a copy', () => {
  const boundary = new RecordBoundary('rome', { padding: 'end' })
  for (const pieces of [[file.subarray(0, 70)], [file.subarray(70, 80), file.subarray(80)]])
    assert.equal(boundary.pass(pieces), pieces)
})

test('a PCAP is cut where zeros fill it up, wherever its chunks end', async () => {
  for (const zeros of [1, 15, 100]) {
    const padded = Buffer.concat([file, Buffer.alloc(zeros)])
    for (let bytes = 1; bytes <= padded.length; bytes++) {
      const kept: Uint8Array[] = []
      for await (const chunk of withoutPadding('rome', inChunks(padded, bytes))) kept.push(chunk)
      assert.ok(Buffer.concat(kept).equals(file), `${zeros} zeros, chunks of ${bytes}`)
    }
  }
})

test('zeros of which some were taken for a record are refused where they cannot be left out', () => {
  const boundary = new RecordBoundary('rome', { padding: 'fault' })
  boundary.feed([file, Buffer.alloc(7)])
  assert.equal(boundary.atBoundary, false)
  assert.throws(() => boundary.feed([Buffer.alloc(9)]), /zeros instead of a record at offset/)
})
