import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PcapMerge } from '../../../src/pcap/merge.ts'
import { PcapInput } from '../../../src/pcap/pcap-input.ts'
import { INDEX_END, INDEX_WORDS, RecordWindow } from '../../../src/pcap/record-window.ts'
import { inReusedChunks, makePacket, makePcap } from '../../support/packet-maker.ts'

const HEADER_BYTES = 24
const packets = (count: number, laterNs: bigint) =>
  Array.from({ length: count }, (_, n) => makePacket(1_000n + BigInt(n) + laterNs, ''))

test('looks at as many whole records as its index has room for, and at a part of one only behind fewer', () => {
  const window = new RecordWindow(true)
  const room = window.index.length / INDEX_WORDS
  const bytes = makePcap(packets(room + 2, 0n)).subarray(HEADER_BYTES)
  for (const [shown, seen, records] of [
    [bytes.length, 16 * room, room],
    [16 * room + 7, 16 * room, room],
    [16 * room, 16 * room, room],
    [16 * room - 1, 16 * room - 1, room - 1],
    [15, 15, 0],
  ] as const) {
    window.show(bytes.subarray(0, shown))
    assert.deepEqual([window.bytes.length, window.indexEnd / INDEX_WORDS], [seen, records])
    let taken = 0
    for (; window.frontEnd !== 0; taken++) {
      assert.deepEqual([window.front, window.frontEnd], [16 * taken, 16 * taken + 16])
      assert.equal(window.index[window.indexFront + INDEX_END], window.frontEnd)
      window.takeRecord()
    }
    assert.equal(taken, records)
  }
})

test('records that are too many for one look come with the next, and are aligned once', async () => {
  const [count, alignNs] = [5_000, 7n]
  const file = makePcap(packets(count, alignNs))
  for (const chunkBytes of [31, 8_192, 8_193, 65_536, 131_072]) {
    const input = await PcapInput.open('rome', inReusedChunks(file, chunkBytes), { alignNs })
    const merge = new PcapMerge([input])
    const chunks: Buffer[] = []
    for await (const chunk of merge.chunks()) chunks.push(Buffer.from(chunk))
    assert.deepEqual(Buffer.concat([makePcap([]), ...chunks]), makePcap(packets(count, 0n)))
    const { packets: taken, firstNs, lastNs } = input.totals
    assert.deepEqual([taken, firstNs, lastNs], [count, 1_000n, 999n + BigInt(count)])
  }
})
