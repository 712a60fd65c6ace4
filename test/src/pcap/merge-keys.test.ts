import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LAST_KEY, LoserTree } from '../../../src/pcap/loser-tree.ts'
import { PcapMerge } from '../../../src/pcap/merge.ts'
import { PcapInput } from '../../../src/pcap/pcap-input.ts'
import { inReusedChunks, makePacket, makePcap } from '../../support/packet-maker.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const DAY_NS = 86_400_000_000_000n
const LAST_NS = (2n ** 32n - 1n) * 1_000_000_000n

test('the tree gives inputs by key, then by number, and says how long the winner stays it', (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  for (let round = 0; round < 2_000; round++) {
    const tree = new LoserTree(random.integer(1, 20))
    const least = random.pick([0, LAST_KEY - 8])
    for (const rank of tree.keys.keys()) tree.keys[rank] = random.pick([0, least]) + random.integer(0, 8)
    tree.build()
    for (let step = 0; step < 30; step++) {
      const [first, second] = [...tree.keys.entries()].sort((a, b) => a[1] - b[1] || a[0] - b[0])
      assert.equal(tree.winner, first?.[0])
      const bound = second === undefined ? Infinity : second[1] + (tree.winner < second[0] ? 1 : 0)
      assert.equal(tree.winnerStaysBelow(), bound)
      tree.keys[tree.winner] = Math.min((first?.[1] ?? 0) + random.integer(0, 4), LAST_KEY)
      tree.replay()
    }
  }
})

test('keeps nanoseconds apart over all times that a PCAP can carry: 300 random cases', async (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  for (let round = 0; round < 300; round++) {
    const instants = Array.from(
      { length: random.integer(1, 4) },
      () => BigInt(random.integer(0, 49_000)) * DAY_NS,
    )
    const lists = Array.from({ length: random.integer(1, 5) }, (_, input) =>
      Array.from(
        { length: random.integer(0, 12) },
        () => random.pick(instants) + BigInt(random.integer(0, 3)),
      )
        .sort((a, b) => Number(a - b))
        .map((ns, n) => makePacket(ns > LAST_NS ? LAST_NS : ns, `${input}.${n}`)),
    )
    const expected = lists.flat().sort((a, b) => (a.ns < b.ns ? -1 : Number(a.ns > b.ns)))
    const inputs = lists.map((records, n) => PcapInput.open(`${n}`, inReusedChunks(makePcap(records), 50)))
    const chunks: Buffer[] = []
    for await (const chunk of new PcapMerge(await Promise.all(inputs)).chunks())
      chunks.push(Buffer.from(chunk))
    assert.deepEqual(Buffer.concat([makePcap([]), ...chunks]), makePcap(expected), `round ${round}`)
  }
})

test('tsMaxNs holds to the nanosecond where the end is years after the first packet', async () => {
  const tsMaxNs = 3_650n * DAY_NS
  const records = [0n, tsMaxNs - 1n, tsMaxNs].map((ns) => makePacket(ns, 'packet'))
  const input = await PcapInput.open('rome', inReusedChunks(makePcap(records), 30))
  const merge = new PcapMerge([input], { tsMaxNs })
  for await (const _ of merge.chunks());
  assert.equal(merge.totals.packets, 2)
})

test('tsMaxNs counts from a first packet whose fraction makes seconds', async () => {
  const fractionNs = 4_000_000_000n
  const records = [0n, fractionNs + 9n, fractionNs + 10n].map((ns) => makePacket(ns, 'packet'))
  const file = makePcap(records)
  file.writeUInt32LE(Number(fractionNs), 28)
  const merge = new PcapMerge([await PcapInput.open('rome', inReusedChunks(file, 30))], { tsMaxNs: 10n })
  for await (const _ of merge.chunks());
  assert.equal(merge.totals.packets, 2)
})
