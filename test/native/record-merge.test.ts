import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type MergeOptions, PcapMerge } from '../../src/gateway/pcap/merge.ts'
import { PcapInput } from '../../src/gateway/pcap/pcap-input.ts'
import { inReusedChunks, makePacket, makePcap } from '../support/packets/packet-maker.ts'
import type { PcapRecord } from '../support/packets/pcap-records.ts'
import { type SeededRandom, seededRandom } from '../support/seeded-random.ts'

const START_NS = 1_700_000_000_000_000_000n
const DAY_NS = 86_400_000_000_000n
const LAST_NS = (2n ** 32n - 1n) * 1_000_000_000n
const ETHERNET_BYTES = 14

test('passes exactly the records that both limits allow, and knows the first one left out', async (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  for (let round = 0; round < 500; round++) {
    const lists = randomLists(random)
    const all = sorted(lists).map(({ record }) => record)
    const maxPackets = random.integer(1, 45)
    const maxBytes = random.integer(0, 2_600)
    let [packets, bytes] = [0, 0]
    for (const { captured } of all) {
      if (packets === maxPackets || bytes + 16 + captured.byteLength > maxBytes) break
      bytes += 16 + captured.byteLength
      packets++
    }
    const limits = { maxPackets: BigInt(maxPackets), maxBytes: BigInt(maxBytes) }
    const merged = await merge(lists, limits)
    assert.deepEqual(merged.bytes, makePcap(all.slice(0, packets)), `round ${round}`)
    assert.equal(merged.totals.packets, packets)
    assert.equal(merged.totals.nextNs, all[packets]?.ns)
  }
})

test('Dedup agrees with a comparison of every packet with every earlier one: 500 random cases', async (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  let dropped = 0
  for (let round = 0; round < 500; round++) {
    const lists = randomLists(random)
    const dedupNs = BigInt(random.integer(0, 6))
    const merged = await merge(lists, { dedupNs })
    const expected = withoutDuplicates(lists, dedupNs)
    assert.deepEqual(merged.bytes, makePcap(expected), `round ${round}`)
    const duplicates = merged.totals.inputs.map((input) => input.duplicates)
    dropped += duplicates.reduce((sum, count) => sum + count, 0)
    assert.equal(merged.totals.packets, expected.length)
  }
  assert.ok(dropped > 500, 'there were duplicates')
})

test('Dedup remembers packets over seconds and months: 200 random cases', async (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  let dropped = 0
  for (let round = 0; round < 200; round++) {
    const gapNs = random.pick([700_000_000n, 2_147_483_646n, 40n * 86_400_000_000_000n])
    const lists = randomLists(random, gapNs)
    const dedupNs = gapNs * BigInt(random.integer(0, 6))
    const merged = await merge(lists, { dedupNs })
    const expected = withoutDuplicates(lists, dedupNs)
    assert.deepEqual(merged.bytes, makePcap(expected), `round ${round}`)
    dropped += lists.flat().length - expected.length
  }
  assert.ok(dropped > 200, 'there were duplicates')
})

test('Dedup drops what one input repeats, for as long as it lasts from the packet that was kept', async () => {
  const list = [0n, 3n, 5n, 6n, 11n].map((at) => makePacket(START_NS + at, 'a header; repeated'))
  const merged = await merge([list], { dedupNs: 5n })
  assert.deepEqual(merged.bytes, makePcap([0, 3].map((index) => list[index] as PcapRecord)))
  assert.equal(merged.totals.inputs[0]?.duplicates, 3)
})

test('the comparison notices a duplicate that stays', () => {
  const twice = [[makePacket(1n, 'same')], [makePacket(2n, 'same')]]
  assert.equal(withoutDuplicates(twice, 1n).length, 1)
  assert.equal(withoutDuplicates(twice, 0n).length, 2)
})

test('Dedup looks past the link-layer header and its VLAN tags, where it knows the link type', async () => {
  const tagged = (address: string, tag: number, vlan: number) => {
    const captured = Buffer.alloc(60, 'payload')
    captured.write(address)
    captured.writeUInt16BE(tag, 12)
    captured.writeUInt16BE(vlan, 14)
    captured.writeUInt16BE(0x0800, 16)
    return captured
  }
  const at = (n: number, captured: Buffer) => [{ ns: START_NS + BigInt(n), originalLength: 60, captured }]
  for (const tag of [0x8100, 0x88a8, 0x9100, 0x9200]) {
    const lists = ['rome', 'oslo'].map((address, n) => at(n, tagged(address, tag, n + 1)))
    assert.equal((await merge(lists, { dedupNs: 1n })).totals.packets, 1)
    assert.equal((await merge(lists, { dedupNs: 1n }, 105)).totals.packets, 2)
    const untagged = Buffer.concat([
      lists[0]?.[0]?.captured.subarray(0, 12) ?? Buffer.alloc(0),
      Buffer.from([8, 0]),
    ])
    const plain = Buffer.concat([untagged, tagged('', tag, 1).subarray(18)])
    assert.equal((await merge([...lists, at(2, plain)], { dedupNs: 2n })).totals.packets, 1)
  }
})

test('the limits count what is left after Dedup', async () => {
  const same = [1n, 2n, 3n].map((at) => makePacket(START_NS + at, `packet ${at} of both`))
  const merged = await merge([same, same], { dedupNs: 0n, maxPackets: 2n })
  assert.deepEqual(merged.bytes, makePcap(same.slice(0, 2)))
  assert.equal(merged.totals.nextNs, START_NS + 3n)
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

/** Few different packets and times, so that many are equal. */
function randomLists(random: SeededRandom, gapNs = 1n): PcapRecord[][] {
  return Array.from({ length: random.integer(1, 4) }, () => {
    let ns = START_NS
    return Array.from({ length: random.integer(0, 15) }, () => {
      ns += gapNs * BigInt(random.integer(0, 3))
      return makePacket(
        ns,
        random.pick(['', 'short', `a header; ${random.integer(0, 4)}`, 'a header; payload']),
      )
    })
  })
}

function sorted(lists: readonly (readonly PcapRecord[])[]) {
  return lists
    .flatMap((records, rank) => records.map((record) => ({ record, rank })))
    .sort((a, b) => Number(a.record.ns - b.record.ns))
}

/** The definition of Dedup, in its simplest form. */
function withoutDuplicates(lists: readonly (readonly PcapRecord[])[], windowNs: bigint): PcapRecord[] {
  const kept: PcapRecord[] = []
  const payload = ({ captured }: PcapRecord) => captured.subarray(ETHERNET_BYTES).toString('hex')
  for (const { record: next } of sorted(lists)) {
    const isCopy = kept.some((before) => next.ns - before.ns <= windowNs && payload(before) === payload(next))
    if (!isCopy) kept.push(next)
  }
  return kept
}

async function merge(lists: readonly (readonly PcapRecord[])[], options: MergeOptions, linkType = 1) {
  const inputs = lists.map((records, n) =>
    PcapInput.open(`device ${n}`, inReusedChunks(makePcap(records, { linkType }), 60)),
  )
  const merging = new PcapMerge(await Promise.all(inputs), options)
  const chunks: Buffer[] = []
  for await (const chunk of merging.chunks()) chunks.push(Buffer.from(chunk))
  return { bytes: Buffer.concat([makePcap([]), ...chunks]), totals: merging.totals }
}
