/**
 * Where a capture is divided into splits. A split is a half-open interval; each begins where the previous one ends,
 * except that intervals which cannot contain a packet are left out.
 */
import { type BlockList, listBlocks } from '../../native/addon.ts'
import { type StoredCapture, segmentsOf, streamOf } from '../store/stored-capture.ts'

const MILLISECOND_NS = 1_000_000n

export interface SplitInterval {
  readonly startNs: bigint
  readonly stopNs: bigint
}

export interface CutOptions {
  /** Splits that begin before this are left out. */
  readonly fromNs: bigint
  /** At most one more than this many are returned: enough to know that there are more. */
  readonly limit: number
}

/**
 * By time: at every multiple of `unitNs` since 1970 (UTC), so that splits of several captures align; the first and
 * last are clipped to the capture.
 */
export function cutByTime(capture: StoredCapture, unitNs: bigint, options: CutOptions): SplitInterval[] {
  const segments = [...segmentsOf(capture)].sort(byMinNs)
  const intervals: SplitInterval[] = []
  let nextNs = options.fromNs - (options.fromNs % unitNs)
  for (const { minNs, maxNs } of segments) {
    const firstNs = minNs - (minNs % unitNs)
    if (firstNs > nextNs) nextNs = firstNs
    for (; nextNs <= maxNs; nextNs += unitNs) {
      const interval = clip({ startNs: nextNs, stopNs: nextNs + unitNs }, capture)
      if (interval.startNs >= options.fromNs) intervals.push(interval)
      if (intervals.length > options.limit) return intervals
    }
  }
  return intervals
}

/** The part of the interval that the capture covers. */
function clip({ startNs, stopNs }: SplitInterval, capture: StoredCapture): SplitInterval {
  return {
    startNs: startNs < capture.startNs ? capture.startNs : startNs,
    stopNs: capture.endNs < stopNs ? capture.endNs : stopNs,
  }
}

/**
 * By size: before each block that would take a split over `bytes`, at the millisecond in which the block begins,
 * because packets are counted per millisecond without being read. Other blocks may extend across that instant, so a
 * split can be some blocks larger or smaller.
 */
export async function cutBySize(
  capture: StoredCapture,
  options: CutOptions & { readonly bytes: bigint; readonly folder: string },
): Promise<SplitInterval[]> {
  const intervals: SplitInterval[] = []
  let startNs = capture.startNs
  let bytes = 0n
  for await (const block of blocksByTime(capture, options.folder)) {
    const cutNs = block.minNs - (block.minNs % MILLISECOND_NS)
    if (bytes + block.bytes > options.bytes && cutNs > startNs) {
      if (startNs >= options.fromNs) intervals.push({ startNs, stopNs: cutNs })
      if (intervals.length > options.limit) return intervals
      startNs = cutNs
      bytes = 0n
    }
    bytes += block.bytes
  }
  if (bytes > 0n && startNs >= options.fromNs) intervals.push({ startNs, stopNs: capture.endNs })
  return intervals
}

interface Block {
  readonly minNs: bigint
  readonly bytes: bigint
}

/** Usually one GiB each: that many blocks are sorted within a few milliseconds, in a few megabytes. */
const SEGMENTS_AT_ONCE = 16

/** All blocks by their first timestamp, from the indexes of a few segments at a time. */
async function* blocksByTime(capture: StoredCapture, folder: string): AsyncGenerator<Block> {
  const segments = [...segmentsOf(capture)].sort(byMinNs)
  let held: Block[] = []
  for (let first = 0; first < segments.length; first += SEGMENTS_AT_ONCE) {
    const group = segments.slice(first, first + SEGMENTS_AT_ONCE)
    const streams = group.map((segment) => streamOf(folder, segment))
    held = [...held, ...blocksOf(await listBlocks({ streams }))].sort(byMinNs)
    // No block of a later segment begins before that segment does.
    const untilNs = segments[first + SEGMENTS_AT_ONCE]?.minNs
    const ready = untilNs === undefined ? held.length : held.findIndex(({ minNs }) => minNs >= untilNs)
    yield* held.splice(0, ready < 0 ? held.length : ready)
  }
}

function blocksOf({ minNs, bytes }: BlockList): Block[] {
  return Array.from(minNs, (ns, index) => ({ minNs: ns, bytes: BigInt(bytes[index] ?? 0) }))
}

function byMinNs(a: { readonly minNs: bigint }, b: { readonly minNs: bigint }): number {
  if (a.minNs === b.minNs) return 0
  return a.minNs < b.minNs ? -1 : 1
}
