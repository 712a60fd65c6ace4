/**
 * Packets and bytes of captures in each bucket of a time range, without reading packets. For most segments the record
 * suffices: they lie within one bucket. Of the others, a few are counted from their indexes and tallies, many from
 * cached profiles.
 */
import { countPackets } from '../../native/addon.ts'
import { type LogEntry, SegmentFlag } from '../../native/segment-entry.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import { PCAP_HEADER_BYTES } from '../../src/shared/pcap/pcap-sizes.ts'
import type { TimeSpan } from '../store/removed-spans.ts'
import { pathOf, portsOf, type StoredCapture, segmentsIn, streamOf } from '../store/stored-capture.ts'
import type { ActivityBuckets, Amount } from './activity-buckets.ts'
import {
  amountOf,
  type FinishedSegment,
  type SegmentProfile,
  type SegmentProfiles,
} from './segment-profiles.ts'

/** The indexes of this many full segments are read in a few milliseconds. */
const COUNTED_MAX = 32
/** For this many at once the distribution over time is known; for the others, their records must suffice. */
const PROFILES_MAX = 12_000
/** Segments without a profile that are examined concurrently: enough for the engine's threads. */
const LOOKS_AT_ONCE = 8

export interface ActivityStore {
  readonly folderOf: (capture: StoredCapture) => string
  readonly profiles: SegmentProfiles
}

/**
 * Returns the times of segments that are known to have lost packets, and of those whose indexes cannot be read; the
 * packets of the latter are taken from the log and spread evenly. Otherwise fails like countPackets.
 */
export async function countActivity(
  buckets: ActivityBuckets,
  captures: readonly StoredCapture[],
  { folderOf, profiles }: ActivityStore,
  signal: AbortSignal,
): Promise<readonly TimeSpan[]> {
  const cut: CutSegment[] = []
  const damaged: TimeSpan[] = []
  for (const capture of captures) {
    if (reachesInto(capture, buckets)) damaged.push(...addWhole(buckets, capture, folderOf, cut))
  }
  const finished = cut.filter(({ isGrowing }) => !isGrowing)
  if (finished.length <= COUNTED_MAX) return [...damaged, ...(await addCounted(buckets, cut, signal))]
  const growing = cut.filter(({ isGrowing }) => isGrowing)
  damaged.push(...(await addCounted(buckets, growing, signal)))
  const unknown = finished
    .splice(0, PROFILES_MAX)
    .filter((segment) => !addKept(buckets, segment, profiles.kept(segment)))
  for (const segment of finished) addAsRecorded(buckets, segment)
  for (let begin = 0; begin < unknown.length; begin += LOOKS_AT_ONCE) {
    signal.throwIfAborted()
    const looked = unknown.slice(begin, begin + LOOKS_AT_ONCE)
    const found = await Promise.all(looked.map((segment) => unlessDamaged(profiles.count(segment))))
    for (const [index, segment] of looked.entries())
      if (!addKept(buckets, segment, found[index])) damaged.push(addAsRecorded(buckets, segment))
  }
  return damaged
}

/** A segment that contains an edge of a bucket. */
interface CutSegment extends FinishedSegment {
  readonly bytes: bigint
  readonly isGrowing: boolean
}

function reachesInto({ startNs, endNs }: StoredCapture, { range }: ActivityBuckets): boolean {
  return startNs < range.endNs && endNs > range.beginNs
}

/**
 * Adds the segments that lie within one bucket, and puts the others that overlap the range into `cut`. Returns the
 * times of those known to have lost packets.
 */
function addWhole(
  buckets: ActivityBuckets,
  capture: StoredCapture,
  folderOf: ActivityStore['folderOf'],
  cut: CutSegment[],
): readonly TimeSpan[] {
  const { beginNs, endNs } = buckets.range
  const damaged: TimeSpan[] = []
  const folder = folderOf(capture)
  for (const port of portsOf(capture)) {
    for (const segment of segmentsIn(capture, port, { fromNs: beginNs, toNs: endNs })) {
      const { minNs, maxNs, packets, bytes, flags } = segment
      if ((flags & SegmentFlag.damaged) !== 0) damaged.push({ beginNs: minNs, endNs: maxNs + 1n })
      if (packets === 0n) continue
      if (buckets.addToOne({ beginNs: minNs, endNs: maxNs + 1n }, amountIn(segment))) continue
      const isGrowing = (flags & SegmentFlag.growing) !== 0
      const [path, files] = [pathOf(folder, segment), streamOf(folder, segment)]
      cut.push({ path, files, minNs, maxNs, packets, bytes, isGrowing })
    }
  }
  return damaged
}

/** Returns the times of the damaged ones. */
async function addCounted(
  buckets: ActivityBuckets,
  segments: readonly CutSegment[],
  signal: AbortSignal,
): Promise<TimeSpan[]> {
  const [first] = segments
  if (first === undefined) return []
  const boundariesNs = buckets.countedAtNs
  const streams = segments.map(({ files }) => files)
  const counts = await unlessDamaged(countPackets({ streams, boundariesNs, signal }))
  if (counts === undefined && segments.length === 1) return [addAsRecorded(buckets, first)]
  if (counts === undefined) {
    const found: TimeSpan[] = []
    for (const segment of segments) found.push(...(await addCounted(buckets, [segment], signal)))
    return found
  }
  const held = segments.reduce(
    ({ minNs, maxNs }, one) => ({
      minNs: one.minNs < minNs ? one.minNs : minNs,
      maxNs: one.maxNs > maxNs ? one.maxNs : maxNs,
    }),
    { minNs: first.minNs, maxNs: first.maxNs },
  )
  for (const [index, { packets, bytes }] of counts.entries()) {
    const span = { beginNs: boundariesNs[index] ?? 0n, endNs: boundariesNs[index + 1] ?? 0n }
    buckets.add(within(held, span), { packets: Number(packets), bytes: Number(bytes) })
  }
  return []
}

/** Returns undefined if an index is damaged. */
async function unlessDamaged<Found>(finding: Promise<Found>): Promise<Found | undefined> {
  try {
    return await finding
  } catch (error) {
    if (error instanceof CapfleetError && error.code === 'store-corrupt') return undefined
    throw error
  }
}

function addAsRecorded(buckets: ActivityBuckets, segment: CutSegment): TimeSpan {
  const span = { beginNs: segment.minNs, endNs: segment.maxNs + 1n }
  buckets.add(span, amountIn(segment))
  return span
}

function amountIn({ packets, bytes }: Pick<LogEntry, 'packets' | 'bytes'>): Amount {
  return { packets: Number(packets), bytes: Number(bytes - BigInt(PCAP_HEADER_BYTES)) }
}

/** No packet of the segment lies outside its times, so those of a range that covers them are all in the range. */
function within({ minNs, maxNs }: Pick<LogEntry, 'minNs' | 'maxNs'>, { beginNs, endNs }: TimeSpan): TimeSpan {
  return { beginNs: beginNs < minNs ? minNs : beginNs, endNs: endNs > maxNs ? maxNs + 1n : endNs }
}

/**
 * Parts that lie within one bucket are added together, one that contains an edge separately. Returns false, without
 * adding anything, if no profile is known.
 */
function addKept(
  buckets: ActivityBuckets,
  segment: FinishedSegment,
  profile: SegmentProfile | undefined,
): boolean {
  if (profile === undefined) return false
  const { partNs, packets } = profile
  for (let index = 0; index < packets.length; ) {
    const beginNs = profile.beginNs + BigInt(index) * partNs
    const edgeNs = buckets.edgeBehind(beginNs)
    if (edgeNs === undefined) break
    const until = Math.min(packets.length, index + Math.max(1, Number((edgeNs - beginNs) / partNs)))
    const endNs = profile.beginNs + BigInt(until) * partNs
    buckets.add(within(segment, { beginNs, endNs }), amountOf(profile, index, until))
    index = until
  }
  return true
}
