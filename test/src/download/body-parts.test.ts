// The small parts that follow a body's bytes, each against a plain reading of the same bytes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { BodyTail } from '../../../src/download/body-tail.ts'
import { TimeMarks } from '../../../src/download/time-marks.ts'
import { UnfinishedRecord } from '../../../src/download/unfinished-record.ts'
import { verifiedChunks } from '../../../src/download/verified-chunks.ts'
import { fleetPcap } from '../../support/devices/fake-fleet.ts'
import { inChunks, makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { readPcap } from '../../support/packets/pcap-records.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const RANDOM = seededRandom()
const TAIL_BYTES = 16_384
const PCAP = fleetPcap(0, 400)

function randomPieces(bytes: Buffer, mostBytes: number): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = RANDOM.integer(0, mostBytes)
    pieces.push(bytes.subarray(at, at + length))
    at += length
  }
  return pieces
}

test(`the tail of a body is its last 64 KiB, however it is cut (SEED=${RANDOM.seed})`, () => {
  for (const mostBytes of [7_000, 70_000, 200_000]) {
    const tail = new BodyTail()
    let seen = Buffer.alloc(0)
    for (const piece of randomPieces(PCAP, mostBytes)) {
      tail.add(piece)
      seen = Buffer.concat([seen, piece])
      assert.equal(tail.length, Math.min(seen.length, TAIL_BYTES))
      for (const length of [tail.length, RANDOM.integer(0, tail.length)]) {
        assert.equal(tail.crc32(length), crc32(seen.subarray(seen.length - length)))
      }
    }
  }
})

test('the unfinished record is what follows the last whole one', () => {
  const ends = [24]
  for (const { captured } of readPcap(PCAP).records) ends.push((ends.at(-1) ?? 0) + 16 + captured.length)
  const record = new UnfinishedRecord()
  let fed = 0
  for (const piece of randomPieces(PCAP, 2_000)) {
    record.feed(piece)
    fed += piece.length
    const end = ends.findLast((one) => one <= fed) ?? 0
    assert.ok(record.bytes.equals(PCAP.subarray(fed < 24 ? 24 : end, Math.max(fed, 24))), `${fed} bytes`)
    assert.ok(record.header.equals(PCAP.subarray(0, Math.min(fed, 24))))
  }
})

test('a body is the same when its checkpoints fit, and another one from the first changed byte that they cover', async () => {
  const changed = new Error('changed')
  const checkpoints = [100_000, 150_000].map((bytes) => ({
    bytes: String(bytes),
    overBytes: TAIL_BYTES,
    crc32: crc32(PCAP.subarray(bytes - TAIL_BYTES, bytes)),
  }))
  const read = (bytes: Buffer, from = 0) =>
    Array.fromAsync(
      verifiedChunks(inChunks(bytes.subarray(from), 7_777), {
        from: BigInt(from),
        checkpoints,
        changed: () => changed,
      }),
    )
  for (const from of [0, 30_000, 90_000, 149_000]) {
    assert.ok(Buffer.concat(await read(PCAP, from)).equals(PCAP.subarray(from)))
  }
  for (const at of [99_999, 133_616, 149_999]) {
    const damaged = Buffer.from(PCAP)
    damaged[at] = (damaged[at] ?? 0) ^ 1
    await assert.rejects(read(damaged), changed, `byte ${at}`)
  }
  await assert.rejects(read(PCAP.subarray(0, 149_000)), changed, 'it ends too early')
})

test('a mark parts the packets by time: all before it are earlier, none after it', () => {
  const times = [5n, 5n, 5n, 7n, 7n, 8n, 9n]
  const pcap = makePcap(times.map((ns, index) => makePacket(ns, `packet ${index}`, 60 + index)))
  const marks = new TimeMarks('nsec')
  marks.see(pcap.subarray(24), 24n, () => [])
  const [mark] = marks.all
  const at = Number(mark?.bytes)
  assert.equal(mark?.fromNs, '7')
  assert.equal(mark?.crc32, crc32(pcap.subarray(at, at + mark?.headBytes)))
  const before = readPcap(pcap.subarray(0, at)).records.map(({ ns }) => ns)
  const behind = readPcap(Buffer.concat([pcap.subarray(0, 24), pcap.subarray(at)])).records.map(
    ({ ns }) => ns,
  )
  assert.deepEqual([before, behind], [times.slice(0, 3), times.slice(3)])
})

test('packets of one time leave no mark, nor does one device that is out of order or may be', () => {
  const same = makePcap([5n, 5n].map((ns) => makePacket(ns, 'x', 60))).subarray(24)
  const rising = makePcap([5n, 6n].map((ns) => makePacket(ns, 'x', 60))).subarray(24)
  const marks = new TimeMarks('nsec')
  marks.see(same, 24n, () => [])
  const ordered = { isOrdered: true, outOfOrder: 0 }
  for (const other of [
    { ...ordered, outOfOrder: 1 },
    { ...ordered, isOrdered: false },
  ]) {
    marks.see(rising, 24n, () => [ordered, other] as never)
  }
  assert.deepEqual(marks.all, [])
  marks.see(rising, 24n, () => [ordered, { ...ordered, status: 'missing', isOrdered: false }] as never)
  assert.equal(marks.all.length, 1)
})
