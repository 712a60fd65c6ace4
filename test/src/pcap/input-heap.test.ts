import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InputHeap } from '../../../src/pcap/input-heap.ts'
import { PcapInput } from '../../../src/pcap/pcap-input.ts'
import { inChunks, makePacket, makePcap } from '../../support/packet-maker.ts'
import { seededRandom } from '../../support/seeded-random.ts'

test('gives inputs by key, then by rank, and knows the runner-up', async (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  for (let round = 0; round < 300; round++) {
    const heap = new InputHeap()
    const expected: { ns: bigint; rank: number }[] = []
    for (let rank = 0; rank < random.integer(1, 20); rank++) {
      const ns = BigInt(random.integer(0, 8)) * 500_000_000n
      heap.add(await inputAt(ns), rank)
      expected.push({ ns, rank })
    }
    expected.sort((a, b) => Number(a.ns - b.ns) || a.rank - b.rank)
    for (const [place, { rank }] of expected.entries()) {
      assert.equal(heap.first?.rank, rank)
      assert.equal(heap.runnerUp?.rank, expected[place + 1]?.rank)
      heap.removeFirst()
    }
    assert.equal(heap.first, undefined)
  }
})

test('moves the first down when its key has grown', async () => {
  const heap = new InputHeap()
  const growing = await inputAt(1n, 5n)
  heap.add(growing, 0)
  for (const [rank, ns] of [2n, 3n, 7n].entries()) heap.add(await inputAt(ns), rank + 1)
  growing.takeRun(0, 2)
  heap.sinkFirst()
  const order: (number | undefined)[] = []
  for (; heap.first !== undefined; heap.removeFirst()) order.push(heap.first.rank)
  assert.deepEqual(order, [1, 2, 0, 3])
})

async function inputAt(...timestamps: bigint[]): Promise<PcapInput> {
  const file = makePcap(timestamps.map((ns) => makePacket(ns, '')))
  const input = await PcapInput.open('device', inChunks(file, file.byteLength))
  await input.fill()
  return input
}
