import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { RecordMark } from '../../../../native/record-merge.ts'
import { afterDelivered } from '../../../../src/gateway/pcap/after-delivered.ts'
import { PcapMerge } from '../../../../src/gateway/pcap/merge.ts'
import { type ChunkStream, type InputOptions, PcapInput } from '../../../../src/gateway/pcap/pcap-input.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { parsePcapHeader } from '../../../../src/shared/pcap/pcap-header.ts'
import {
  inArrivingChunks,
  inChunks,
  inReusedChunks,
  makePacket,
  makePcap,
} from '../../../support/packets/packet-maker.ts'
import { readPcap } from '../../../support/packets/pcap-records.ts'

test('opens on a header that arrives byte by byte, and ends there when nothing follows', async () => {
  const input = await PcapInput.open('rome', inChunks(makePcap([], { snaplen: 77 }), 1))
  assert.equal(input.header.snaplen, 77)
  await input.fill()
  assert.equal(input.hasRecord, false)
  assert.deepEqual(input.figures, {
    packets: 0,
    bytes: 0,
    outOfOrder: 0,
    firstNs: undefined,
    lastNs: undefined,
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

test('takes what has arrived without a wait, over the ends of chunks, and is not full without it', async () => {
  const file = makePcap([makePacket(1n, 'first'), makePacket(2n, 'second')])
  let arrived = 0
  const input = await PcapInput.open(
    'rome',
    inArrivingChunks(file, 24, () => arrived-- > 0),
  )
  assert.equal(input.fillFromArrived(), false)
  arrived = 1
  assert.equal(input.fillFromArrived(), true, 'a chunk of the first packet and of the second')
  assert.equal(input.records.skip(1, { isHashed: false }), 1)
  assert.equal(input.fillFromArrived(), false)
  await input.fill()
  assert.equal(input.records.skip(1, { isHashed: false }), 1)
  arrived = 1
  assert.equal(input.fillFromArrived(), false, 'the end is for fill() to tell')
  await input.fill()
  assert.ok(input.ended)
})

test('a failure in data that has arrived is reported by fill(), or resumed there', async () => {
  const cause = new Error('a bad chunk')
  const rest = makePcap([makePacket(1n, 'x')]).subarray(24)
  const open = (options: InputOptions) => {
    const header = inChunks(makePcap([]), 24)
    const take = () => {
      throw cause
    }
    const failing: ChunkStream = { take, next: () => header.next() }
    return PcapInput.open('rome', failing, options)
  }
  const input = await open({})
  assert.equal(input.fillFromArrived(), false)
  await assert.rejects(input.fill(), cause)
  const causes: unknown[] = []
  const resumed = await open({
    resume: async (told) => {
      causes.push(told)
      return inChunks(rest, 5)
    },
  })
  assert.equal(resumed.fillFromArrived(), false)
  await resumed.fill()
  assert.ok(resumed.hasRecord)
  assert.deepEqual(causes, [cause])
})

test('takes whole records one by one, with their figures, and says what follows them', async () => {
  const file = makePcap([5n, 3n, 4n, 6n].map((ns) => makePacket(ns, 'data')))
  for (const chunkBytes of [1, 20, 44, 50, 1_000]) {
    const late: number[] = []
    for (let taken = 1; taken <= 4; taken++) {
      const input = await PcapInput.open('rome', inReusedChunks(file, chunkBytes))
      assert.equal((await input.skip(taken)).packets, taken)
      late.push(input.figures.outOfOrder)
      const rest: Uint8Array[] = []
      for await (const bytes of input.remaining()) rest.push(Buffer.from(bytes))
      assert.deepEqual(Buffer.concat(rest), file.subarray(24 + 20 * taken), `chunks of ${chunkBytes}`)
    }
    assert.deepEqual(late, [0, 1, 2, 2])
    const input = await PcapInput.open('rome', inReusedChunks(file, chunkBytes))
    assert.equal((await input.skip(5)).packets, 4)
    const { packets, bytes, firstNs, lastNs } = input.figures
    assert.deepEqual([packets, bytes, firstNs, lastNs], [4, 80, 5n, 6n])
    assert.ok(input.ended)
  }
})

test('hashes those that it skips as an input hashes its ties and its tail', async () => {
  const times = [1n, 2n, 2n, 2n]
  const packets = times.map((ns, n) => makePacket(ns, `packet ${n}`))
  for (const chunkBytes of [1, 33, 1_000]) {
    const open = (records: typeof packets) =>
      PcapInput.open('rome', inReusedChunks(makePcap(records), chunkBytes), { marksTail: true })
    const whole = await open(packets)
    await whole.skip(4)
    const { ties, tail } = whole.records.arrived()
    assert.deepEqual([ties.packets, tail.packets], [3, 4])
    assert.deepEqual(
      [ties.bytes, tail.bytes],
      [3, 4].map((count) => makePcap(packets.slice(-count)).length - 24),
    )
    assert.deepEqual(await (await open(packets.slice(1))).skip(3), { packets: 3, hash: ties.hash })
    assert.deepEqual(await (await open(packets)).skip(4), { packets: 4, hash: tail.hash })
    assert.notEqual((await (await open(packets.slice(2))).skip(2)).hash, ties.hash)
  }
})

test('aligns every timestamp once, wherever the chunks end', async () => {
  const [count, alignNs] = [5_000, 7n]
  const packets = (laterNs: bigint) =>
    Array.from({ length: count }, (_, n) => makePacket(1_000n + BigInt(n) + laterNs, ''))
  const file = makePcap(packets(alignNs))
  for (const chunkBytes of [31, 8_192, 8_193, 65_536, 131_072]) {
    const input = await PcapInput.open('rome', inReusedChunks(file, chunkBytes), { alignNs })
    const chunks: Buffer[] = []
    for await (const chunk of new PcapMerge([input]).chunks()) chunks.push(Buffer.from(chunk))
    assert.deepEqual(Buffer.concat([makePcap([]), ...chunks]), makePcap(packets(0n)))
    const { packets: taken, firstNs, lastNs } = input.figures
    assert.deepEqual([taken, firstNs, lastNs], [count, 1_000n, 999n + BigInt(count)])
  }
})

test('counts a fraction beyond one second as the later instant, and leaves its bytes alone', async () => {
  const file = makePcap([makePacket(7_000_000_000n, 'odd')])
  file.writeUInt32LE(2_500_000_000, 28)
  const input = await PcapInput.open('rome', inChunks(file, 5))
  const chunks: Buffer[] = []
  for await (const chunk of new PcapMerge([input]).chunks()) chunks.push(Buffer.from(chunk))
  assert.equal(input.figures.lastNs, 9_500_000_000n)
  assert.deepEqual(Buffer.concat(chunks), file.subarray(24))
})

test('reads microsecond timestamps', async () => {
  const file = makePcap([makePacket(1_700_000_000_123_456_789n, '')], { nanoseconds: false })
  const input = await PcapInput.open('rome', inChunks(file, 100))
  await input.skip(1)
  assert.equal(input.figures.lastNs, 1_700_000_000_123_456_000n)
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

test('a chunk that arrives after closing is ignored', async () => {
  const file = makePcap([makePacket(1n, 'data')])
  const late = Promise.withResolvers<IteratorResult<Uint8Array>>()
  const answers = [Promise.resolve({ done: false, value: file.subarray(0, 24) }), late.promise]
  const chunks = { next: () => answers.shift() ?? Promise.reject(new Error('asked again')) }
  const input = await PcapInput.open('rome', chunks)
  const filling = input.fill()
  late.resolve({ done: false, value: file.subarray(24) })
  await input.close()
  await filling
  assert.equal(input.hasRecord, false)
})

const WINDOW = { ns: 10n, bytes: 1_000_000 }
const at = (ns: number) => makePacket(BigInt(ns), `at ${ns}`)

/** Everything that the merge of one input delivers, as times. */
async function mergedTimes(input: PcapInput): Promise<readonly number[]> {
  const chunks = [makePcap([])]
  for await (const chunk of new PcapMerge([input]).chunks()) chunks.push(Buffer.from(chunk))
  return readPcap(Buffer.concat(chunks)).records.map(({ ns }) => Number(ns))
}

test('a sort window sorts what is late, wherever the chunks end, and counts what is too late', async () => {
  const file = makePcap([5, 1, 12, 3, 30, 19, 31].map(at))
  for (let chunkBytes = 1; chunkBytes <= file.length; chunkBytes++) {
    const input = await PcapInput.open('rome', inReusedChunks(file, chunkBytes), { sortWindow: WINDOW })
    assert.deepEqual(await mergedTimes(input), [1, 3, 5, 12, 19, 30, 31])
    assert.deepEqual([input.figures.outOfOrder, input.records.arrived().outOfOrder], [0, 3])
  }
  const late = makePcap([1, 20, 8, 40, 9].map(at))
  const input = await PcapInput.open('rome', inReusedChunks(late, 50), { sortWindow: WINDOW })
  assert.deepEqual(await mergedTimes(input), [1, 8, 20, 9, 40])
  assert.equal(input.figures.outOfOrder, 1)
})

test('a stream that breaks off continues after what arrived, whatever is held back', async () => {
  const packets = [5, 1, 12, 3, 30, 19, 31, 33].map(at)
  const file = makePcap(packets)
  for (let end = 24; end < file.length; end++) {
    const resume = async (_: unknown, { packets: arrived, tail }: { packets: number; tail: RecordMark }) => {
      assert.equal(tail.packets, arrived, 'all that arrived is marked')
      return inReusedChunks(file.subarray(makePcap(packets.slice(0, arrived)).length), 40)
    }
    const input = await PcapInput.open('rome', failingAfter(file.subarray(0, end), new Error('reset')), {
      sortWindow: WINDOW,
      marksAll: true,
      resume,
    })
    assert.deepEqual(await mergedTimes(input), [1, 3, 5, 12, 19, 30, 31, 33], `broken off at ${end}`)
  }
})

test('what is held back of a stream that is given up comes out', async () => {
  const input = await PcapInput.open('rome', failingAfter(makePcap([5, 1, 3].map(at)), new Error('reset')), {
    sortWindow: WINDOW,
    resume: async () => undefined,
  })
  assert.deepEqual(await mergedTimes(input), [1, 3, 5])
})

test('an input that is parked again before it needed its stream waits for the second end of the pause', async () => {
  const packets = [1, 5, 20, 40].map(at)
  const file = makePcap(packets)
  const begun = file.subarray(0, makePcap(packets.slice(0, 3)).length)
  let resumed = 0
  const input = await PcapInput.open('rome', endless(begun), {
    sortWindow: WINDOW,
    resume: async () => {
      resumed += 1
      return inReusedChunks(file.subarray(begun.length), 40)
    },
  })
  await input.fill()
  assert.ok(input.hasRecord)
  input.park()
  assert.ok(input.hasRecord, 'sorted packets stay at hand')
  input.unpark()
  input.park()
  const times = mergedTimes(input)
  await setImmediate()
  assert.equal(resumed, 0)
  input.unpark()
  assert.deepEqual(await times, [1, 5, 20, 40])
  assert.equal(resumed, 1)
})

test('a big-endian stream continues in its byte order', async () => {
  const packets = [1, 2, 3, 4, 5].map(at)
  const file = makePcap(packets, { isBigEndian: true })
  for (let end = 24; end < file.length; end++) {
    const name = 'rome'
    // Chunks are modified in place.
    const begun = failingAfter(Buffer.from(file.subarray(0, end)), new Error('reset'))
    const input: PcapInput = await PcapInput.open(name, begun, {
      marksAll: true,
      resume: async (_, { tail: mark }) =>
        afterDelivered(name, inReusedChunks(file, 47), { header: input.header, mark, ns: undefined }),
    })
    assert.deepEqual(await mergedTimes(input), [1, 2, 3, 4, 5], `broken off at ${end}`)
  }
  const other = inReusedChunks(makePcap(packets), 47)
  const end = { header: parsePcapHeader(file), mark: { packets: 0, bytes: 0, hash: 0n }, ns: undefined }
  await assert.rejects(afterDelivered('rome', other, end), /the file header is different/)
})

/** It has no more data, and does not end. */
async function* endless(bytes: Buffer): AsyncGenerator<Buffer, void> {
  yield bytes
  await new Promise(() => undefined)
}
