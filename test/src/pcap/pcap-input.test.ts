import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CapfleetError } from '../../../src/base/error.ts'
import { PcapInput } from '../../../src/pcap/pcap-input.ts'
import { inChunks, inReusedChunks, makePacket, makePcap } from '../../support/packet-maker.ts'

test('opens on a header that arrives byte by byte, and ends there when nothing follows', async () => {
  const input = await PcapInput.open('rome', inChunks(makePcap([], { snaplen: 77 }), 1))
  assert.equal(input.header.snaplen, 77)
  await input.fill()
  assert.equal(input.hasRecord, false)
  assert.deepEqual(input.totals, {
    name: 'rome',
    packets: 0,
    bytes: 0,
    firstNs: undefined,
    lastNs: undefined,
    outOfOrder: 0,
  })
})

test('names the device when the stream is empty or is no PCAP', async () => {
  for (const bytes of [Buffer.alloc(0), Buffer.from('short'), Buffer.alloc(100, 'no')]) {
    await assert.rejects(
      PcapInput.open('rome', inChunks(bytes, 3)),
      (error) =>
        error instanceof CapfleetError && error.code === 'device-protocol' && /rome/.test(error.message),
    )
  }
})

test("passes the stream's own error on unchanged, before and after the header", async () => {
  const cause = new Error('socket reset')
  await assert.rejects(PcapInput.open('rome', failingAfter(makePcap([]).subarray(0, 10), cause)), cause)
  const input = await PcapInput.open('rome', failingAfter(makePcap([]), cause))
  await assert.rejects(input.fill(), cause)
})

test('shows whole records one by one, and their figures when they are taken', async () => {
  const file = makePcap([5n, 3n, 4n, 6n].map((ns) => makePacket(ns, 'data')))
  for (const chunkBytes of [1, 20, 44, 50, 1_000]) {
    const input = await PcapInput.open('rome', inReusedChunks(file, chunkBytes))
    const taken: Buffer[] = []
    const late: number[] = []
    for (await input.fill(); input.hasRecord; await input.fill()) {
      const { bytes, front, frontEnd } = input.window
      taken.push(Buffer.from(bytes.subarray(front, frontEnd)))
      input.window.takeRecord()
      late.push(input.totals.outOfOrder)
    }
    assert.deepEqual(Buffer.concat(taken), file.subarray(24), `chunks of ${chunkBytes}`)
    assert.deepEqual(late, [0, 1, 2, 2])
    const { packets, bytes, firstNs, lastNs } = input.totals
    assert.deepEqual([packets, bytes, firstNs, lastNs], [4, 80, 5n, 6n])
    assert.ok(input.ended)
  }
})

test('counts a fraction beyond one second as the later instant, and leaves its bytes alone', async () => {
  const file = makePcap([makePacket(7_000_000_000n, 'odd')])
  file.writeUInt32LE(2_500_000_000, 28)
  const input = await PcapInput.open('rome', inChunks(file, 5))
  await input.fill()
  const { window } = input
  window.takeRecord()
  assert.equal(input.totals.lastNs, 9_500_000_000n)
  assert.deepEqual(window.bytes.subarray(0, window.front), file.subarray(24))
})

test('reads microsecond timestamps', async () => {
  const file = makePcap([makePacket(1_700_000_000_123_456_789n, '')], { nanoseconds: false })
  const input = await PcapInput.open('rome', inChunks(file, 100))
  await input.fill()
  input.window.takeRecord()
  assert.equal(input.totals.lastNs, 1_700_000_000_123_456_000n)
})

test('accepts the largest record there may be, in small chunks, and refuses a larger claim', async () => {
  const file = makePcap([makePacket(1n, 'big', 262_144)])
  const input = await PcapInput.open('rome', inChunks(file, 1000))
  await input.fill()
  assert.equal(input.hasRecord, true)
  file.writeUInt32LE(262_145, 32)
  for (const chunkBytes of [1, 30, 1_000_000]) {
    const other = await PcapInput.open('rome', inChunks(file, chunkBytes))
    await assert.rejects(
      other.fill(),
      (error) => error instanceof CapfleetError && /^rome: .*262145 .*offset 24 /.test(error.message),
    )
  }
})

test('gives the iterator back once, also when it never answers', async () => {
  let returned = 0
  const silent: AsyncIterator<Buffer> = {
    next: () => new Promise(() => {}),
    return: () => {
      returned++
      return new Promise(() => {})
    },
  }
  let first = true
  const chunks: AsyncIterator<Buffer> = {
    ...silent,
    next: () => {
      if (!first) return silent.next()
      first = false
      return Promise.resolve({ value: makePcap([]) })
    },
  }
  const input = await PcapInput.open('rome', chunks)
  const filling = input.fill()
  await input.close()
  await input.close()
  assert.equal(returned, 1)
  assert.equal(await Promise.race([filling, Promise.resolve('waiting')]), 'waiting')
})

async function* failingAfter(bytes: Buffer, error: Error): AsyncGenerator<Buffer, void> {
  yield bytes
  throw error
}
