/**
 * Packets and bytes of captures in each bucket of a time range, without a packet being read. Of most segments the record
 * says enough: they lie in one bucket. Of the others, few are counted by their indexes and tallies, many by what is kept
 * of them.
 */
import { countPackets } from '../../native/addon.ts'
import type { CaptureRecord, SegmentRecord } from '../store/capture-record.ts'
import type { TimeSpan } from '../store/removed-spans.ts'
import { segmentPath } from '../store/store-paths.ts'
import type { ActivityBuckets } from './activity-buckets.ts'
import {
  amountOf,
  type FinishedSegment,
  type SegmentProfile,
  type SegmentProfiles,
} from './segment-profiles.ts'

const FILE_HEADER_BYTES = 24n
/** The indexes of so many full segments are read in some milliseconds. */
const COUNTED_MAX = 32
/** Segments that are looked at for the first time, at once: enough for the engine's threads. */
const LOOKS_AT_ONCE = 8

export interface ActivityStore {
  readonly folderOf: (capture: CaptureRecord) => string
  readonly profiles: SegmentProfiles
}

/** Fails as countPackets does. */
export async function countActivity(
  buckets: ActivityBuckets,
  captures: readonly CaptureRecord[],
  { folderOf, profiles }: ActivityStore,
  signal: AbortSignal,
): Promise<void> {
  const cut: CutSegment[] = []
  for (const capture of captures) if (reachesInto(capture, buckets)) addWhole(buckets, capture, folderOf, cut)
  const finished = cut.filter(({ isGrowing }) => !isGrowing)
  const kept = finished.length > COUNTED_MAX ? finished : []
  await addCounted(buckets, kept.length === 0 ? cut : cut.filter(({ isGrowing }) => isGrowing), signal)
  for (let begin = 0; begin < kept.length; begin += LOOKS_AT_ONCE) {
    signal.throwIfAborted()
    const looked = kept.slice(begin, begin + LOOKS_AT_ONCE)
    const found = await Promise.all(looked.map((segment) => profiles.of(segment)))
    for (const [index, segment] of looked.entries())
      addProfile(buckets, segment, found[index] as SegmentProfile)
  }
}

/** A segment with an edge of a bucket inside of its time. */
interface CutSegment extends FinishedSegment {
  readonly isGrowing: boolean
}

function reachesInto({ startNs, endNs }: CaptureRecord, { range }: ActivityBuckets): boolean {
  return startNs < range.endNs && endNs > range.beginNs
}

/** Adds the segments that lie in one bucket, and puts the others that reach into the range into `cut`. */
function addWhole(
  buckets: ActivityBuckets,
  capture: CaptureRecord,
  folderOf: ActivityStore['folderOf'],
  cut: CutSegment[],
): void {
  const { beginNs, endNs } = buckets.range
  for (const { port, segments } of capture.streams) {
    for (const segment of segments) {
      const { minNs, maxNs, packets, bytes, number } = segment
      if (minNs >= endNs || maxNs < beginNs) continue
      const span = { beginNs: minNs, endNs: maxNs + 1n }
      const amount = { packets: Number(packets), bytes: Number(bytes - FILE_HEADER_BYTES) }
      if (buckets.addToOne(span, amount)) continue
      const isGrowing = capture.state === 'active' && segment === segments.at(-1)
      const path = segmentPath(folderOf(capture), port, number)
      cut.push({ port, path, minNs, maxNs, packets, isGrowing })
    }
  }
}

async function addCounted(
  buckets: ActivityBuckets,
  segments: readonly CutSegment[],
  signal: AbortSignal,
): Promise<void> {
  if (segments.length === 0) return
  const boundariesNs = buckets.countedAtNs
  const streams = segments.map(({ port, path }) => ({ port, segments: [path] }))
  const counts = await countPackets({ streams, boundariesNs, signal })
  const held = segments.reduce(
    ({ minNs, maxNs }, one) => ({
      minNs: one.minNs < minNs ? one.minNs : minNs,
      maxNs: one.maxNs > maxNs ? one.maxNs : maxNs,
    }),
    segments[0] ?? { minNs: 0n, maxNs: 0n },
  )
  for (const [index, { packets, bytes }] of counts.entries()) {
    const span = { beginNs: boundariesNs[index] ?? 0n, endNs: boundariesNs[index + 1] ?? 0n }
    buckets.add(within(held, span), { packets: Number(packets), bytes: Number(bytes) })
  }
}

/** No packet of what is held lies outside of its times: those of a range around them are all in the range. */
function within(
  { minNs, maxNs }: Pick<SegmentRecord, 'minNs' | 'maxNs'>,
  { beginNs, endNs }: TimeSpan,
): TimeSpan {
  return { beginNs: beginNs < minNs ? minNs : beginNs, endNs: endNs > maxNs ? maxNs + 1n : endNs }
}

/** Parts that lie in one bucket go there together; one with an edge inside goes by itself. */
function addProfile(buckets: ActivityBuckets, segment: FinishedSegment, profile: SegmentProfile): void {
  const { partNs, packets } = profile
  for (let index = 0; index < packets.length; ) {
    const beginNs = profile.beginNs + BigInt(index) * partNs
    const edgeNs = buckets.edgeBehind(beginNs)
    if (edgeNs === undefined) return
    const until = Math.min(packets.length, index + Math.max(1, Number((edgeNs - beginNs) / partNs)))
    const endNs = profile.beginNs + BigInt(until) * partNs
    buckets.add(within(segment, { beginNs, endNs }), amountOf(profile, index, until))
    index = until
  }
}
