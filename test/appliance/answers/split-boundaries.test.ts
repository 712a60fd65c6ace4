// Where captures are split: whatever the capture, each packet is in exactly one split, and no split exceeds the
// requested size by more than one block.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { cutBySize, cutByTime, type SplitInterval } from '../../../appliance/answers/split-boundaries.ts'
import { StoreWriter } from '../../../appliance/recorder/writer/store-writer.ts'
import { type StoredCapture, segmentsOf } from '../../../appliance/store/stored-capture.ts'
import { captureRecord, type MadeSegment, type MadeStream } from '../../support/packets/capture-records.ts'
import { makePacket } from '../../support/packets/packet-maker.ts'
import { makePcapng, type PortRecord } from '../../support/packets/pcapng-maker.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const random = seededRandom()
const SECOND_NS = 1_000_000_000n
const MILLISECOND_NS = 1_000_000n
const START_NS = 1_790_000_000n * SECOND_NS
const EVERYTHING = { fromNs: 0n, limit: 1_000_000 }
/** The most that a block of the store holds, if no single packet is as large. */
const BLOCK_BYTES = 256 * 1_024
const PACKETS = 900
const RECORD_HEADER_BYTES = 16

/** The intervals ascend and do not overlap, and each instant is in exactly one of them. */
function assertEachInOne(
  intervals: readonly SplitInterval[],
  timestampsNs: readonly bigint[],
  what: string,
): void {
  for (const [index, { startNs, stopNs }] of intervals.entries()) {
    assert.ok(startNs < stopNs, `${what}: split ${index} is [${startNs}, ${stopNs})`)
    const before = intervals[index - 1]
    assert.ok(before === undefined || before.stopNs <= startNs, `${what}: split ${index} begins too early`)
  }
  for (const ns of timestampsNs) {
    const around = intervals.filter(({ startNs, stopNs }) => startNs <= ns && ns < stopNs)
    assert.equal(around.length, 1, `${what}: ${ns} lies in ${around.length} splits`)
  }
}

/** All pages of this many splits, as a client reads them with Limit and After. */
async function inPages(
  most: number,
  cut: (options: { fromNs: bigint; limit: number }) => readonly SplitInterval[] | Promise<SplitInterval[]>,
): Promise<readonly SplitInterval[]> {
  const pages: SplitInterval[] = []
  for (let fromNs: bigint | undefined = 0n; fromNs !== undefined; ) {
    const got: readonly SplitInterval[] = await cut({ fromNs, limit: most })
    pages.push(...got.slice(0, most))
    fromNs = got[most]?.startNs
  }
  return pages
}

interface MadeCapture {
  readonly capture: StoredCapture
  readonly timestampsNs: readonly bigint[]
}

/** Segments of up to three ports with packets at all edges: at multiples of the unit, beside them, anywhere. */
function madeCapture(unitNs: bigint): MadeCapture {
  const timestampsNs: bigint[] = []
  const instant = (): bigint => {
    const unit = (START_NS / unitNs + BigInt(random.integer(0, 30))) * unitNs
    return unit + random.pick([0n, 0n, 1n, -1n, BigInt(random.integer(0, Number(unitNs) - 1))])
  }
  const segment = (number: number): MadeSegment => {
    const inside = Array.from({ length: random.integer(1, 4) }, instant).sort((a, b) => Number(a - b))
    timestampsNs.push(...inside)
    const [minNs = 0n, maxNs = 0n] = [inside[0], inside.at(-1)]
    return { number, minNs, maxNs, packets: BigInt(inside.length), bytes: 1_024n }
  }
  const streams = Array.from({ length: random.integer(1, 3) }, (_, port): MadeStream => {
    const segments = Array.from({ length: random.integer(1, 3) }, (_, index) => segment(index + 1))
    return { port, linkType: 1, snaplen: 65_535, segments }
  })
  const sorted = timestampsNs.toSorted((a, b) => Number(a - b))
  const [startNs = 0n, lastNs = 0n] = [sorted[0], sorted.at(-1)]
  return { capture: captureRecord('made', { startNs, endNs: lastNs + 1n, streams }), timestampsNs }
}

test(`every packet of 2,000 captures is in exactly one split by time, for each unit (SEED=${random.seed})`, async () => {
  for (let round = 0; round < 2_000; round++) {
    const unitNs = random.pick([SECOND_NS, 10n * SECOND_NS, 600n * SECOND_NS])
    const { capture, timestampsNs } = madeCapture(unitNs)
    const intervals = cutByTime(capture, unitNs, EVERYTHING)
    assertEachInOne(intervals, timestampsNs, `round ${round}`)
    const segments = [...segmentsOf(capture)]
    for (const { startNs, stopNs } of intervals) {
      assert.equal((stopNs - 1n) / unitNs, startNs / unitNs, 'within one unit')
      const mayHold = segments.some(({ minNs, maxNs }) => minNs < stopNs && startNs <= maxNs)
      assert.ok(mayHold, `round ${round}: no packet can lie in [${startNs}, ${stopNs})`)
    }
    const pages = await inPages(random.integer(1, 4), (options) => cutByTime(capture, unitNs, options))
    assert.deepEqual(pages, intervals, `round ${round}`)
  }
})

interface CaptureOfPackets {
  readonly capture: StoredCapture
  readonly folder: string
  readonly records: readonly PortRecord[]
}

/** A capture with this many ports in the store; `gapNs` is the time between a packet and the next. */
async function captureOfPackets(
  writer: StoreWriter,
  folder: string,
  options: { readonly name: string; readonly ports: number; readonly gapNs: () => number },
): Promise<CaptureOfPackets> {
  const { name, ports, gapNs } = options
  let ns = START_NS + BigInt(random.integer(0, 999_999_999))
  const records = Array.from({ length: PACKETS }, (_, index): PortRecord => {
    ns += BigInt(gapNs())
    const packet = makePacket(ns, `${name} ${index}`, random.integer(4_000, 9_000))
    return { ...packet, port: random.integer(0, ports - 1) }
  })
  const path = join(folder, `${name}.pcapng`)
  await writeFile(path, makePcapng(ports, records))
  await writer.importCapture({ name, files: [path] })
  const capture = await writer.captureOf(name)
  assert.ok(capture)
  return { capture, folder: writer.folderOf(name), records }
}

const stored: Partial<Record<'sparse' | 'dense' | 'ports', CaptureOfPackets>> = {}
const home = await tempFolder()
after(() => home[Symbol.asyncDispose]())

before(async () => {
  // One or two blocks per segment, and more segments than are read at a time.
  await using writer = await StoreWriter.open(join(home.path, 'store'), { segmentBytes: 300_000 })
  const store = (name: string, ports: number, gapNs: () => number) =>
    captureOfPackets(writer, home.path, { name, ports, gapNs })
  stored.sparse = await store('sparse', 1, () => random.integer(1_000_001, 9_000_000))
  stored.dense = await store('dense', 1, () => random.integer(0, 120_000))
  stored.ports = await store('ports', 3, () => random.integer(0, 300_000))
})

const bytesIn = ({ startNs, stopNs }: SplitInterval, records: readonly PortRecord[]): number =>
  records
    .filter(({ ns }) => startNs <= ns && ns < stopNs)
    .reduce((sum, { captured }) => sum + RECORD_HEADER_BYTES + captured.length, 0)

for (const [kind, overBytes, what] of [
  ['sparse', 0, 'is no larger than asked for, where no two blocks share a millisecond'],
  ['dense', BLOCK_BYTES, 'is larger by less than a block, where packets of two blocks share a millisecond'],
  ['ports', 3 * BLOCK_BYTES, 'is larger by less than a block of each port'],
] as const) {
  test(`a split by size ${what}, and no packet is in none (SEED=${random.seed})`, async () => {
    const { capture, folder, records } = stored[kind] ?? assert.fail('it was stored')
    assert.ok(capture.table.ports.every(({ length }) => length >= 6))
    for (const bytes of [300_000, 500_000, 1_000_000, 1_700_000, 100_000_000]) {
      const cut = (options: { fromNs: bigint; limit: number }) =>
        cutBySize(capture, { ...options, bytes: BigInt(bytes), folder })
      const intervals = await cut(EVERYTHING)
      assertEachInOne(
        intervals,
        records.map(({ ns }) => ns),
        `${kind}, ${bytes}`,
      )
      assert.ok(
        intervals.slice(1).every(({ startNs }) => startNs % MILLISECOND_NS === 0n),
        'cut at whole milliseconds',
      )
      const sizes = intervals.map((interval) => bytesIn(interval, records))
      assert.ok(
        sizes.every((size) => size <= bytes + overBytes),
        `${kind}, ${bytes}: ${sizes}`,
      )
      // Nor are there more splits than necessary.
      const least = bytes - BLOCK_BYTES - overBytes
      assert.ok(
        sizes.slice(0, -1).every((size) => size > least),
        `${kind}, ${bytes}: ${sizes}`,
      )
      assert.deepEqual(await inPages(2, cut), intervals)
    }
  })
}
