/** Values of a lane at an instant, in a time span, and in its visible part. */
import { bytesText, countText, packetsText } from '../../shared/base/amounts.ts'
import { durationText, instantText, NS_PER_S, type Zone } from '../base/instants.ts'
import { TEXTS } from '../texts.ts'
import type { LaneActivity, Stretch } from './lane-activity.ts'
import { digitsOf } from './time-axis.ts'
import { placeOf, type TimeView } from './time-view.ts'

/** One bucket of a lane. */
export interface LaneValues {
  readonly lengthNs: bigint
  readonly packets: number
  readonly bytes: number
  /** Lost packets of a span that overlaps the bucket. */
  readonly lost: bigint
  readonly isGap: boolean
}

/** Returns undefined if the answer does not cover it. */
export function valuesAt(activity: LaneActivity, ns: bigint): LaneValues | undefined {
  const { view, bucketNs, packets, bytes } = activity
  if (ns < view.fromNs || ns >= view.toNs) return undefined
  const index = (ns - view.fromNs) / bucketNs
  const fromNs = view.fromNs + index * bucketNs
  const toNs = fromNs + bucketNs < view.toNs ? fromNs + bucketNs : view.toNs
  return {
    lengthNs: toNs - fromNs,
    packets: packets[Number(index)] ?? 0,
    bytes: bytes[Number(index)] ?? 0,
    lost: activity.dropped
      .filter((stretch) => BigInt(stretch.fromNs) < toNs && BigInt(stretch.toNs) > fromNs)
      .reduce((sum, stretch) => sum + BigInt(stretch.packets), 0n),
    isGap: activity.gaps.some((gap) => BigInt(gap.fromNs) <= ns && ns < BigInt(gap.toNs)),
  }
}

export interface Span {
  readonly fromNs: bigint
  readonly toNs: bigint
}

/**
 * A gap is split where captures begin and end. Inside a capture something is missing, which needs a warning; between
 * captures nothing was being captured.
 */
export function gapParts(
  gap: Stretch,
  captures: readonly Span[],
): readonly (Span & { readonly isInside: boolean })[] {
  const [gapFromNs, gapToNs] = [BigInt(gap.fromNs), BigInt(gap.toNs)]
  const inside = captures
    .filter(({ fromNs, toNs }) => fromNs < gapToNs && toNs > gapFromNs)
    .toSorted((a, b) => (a.fromNs < b.fromNs ? -1 : 1))
  const parts: (Span & { isInside: boolean })[] = []
  let doneNs = gapFromNs
  for (const capture of inside) {
    if (capture.toNs <= doneNs) continue
    if (capture.fromNs > doneNs) parts.push({ fromNs: doneNs, toNs: capture.fromNs, isInside: false })
    const fromNs = capture.fromNs > doneNs ? capture.fromNs : doneNs
    doneNs = capture.toNs < gapToNs ? capture.toNs : gapToNs
    parts.push({ fromNs, toNs: doneNs, isInside: true })
  }
  if (doneNs < gapToNs) parts.push({ fromNs: doneNs, toNs: gapToNs, isInside: false })
  return parts
}

/** The visible buckets: index of the first, and of the one after the last. */
export function shownBuckets(activity: LaneActivity, view: TimeView): readonly [number, number] {
  const span = Number(view.toNs - view.fromNs)
  const perView = Number(activity.bucketNs) / span
  const left = placeOf(view, activity.view.fromNs)
  const first = Math.max(0, Math.floor(-left / perView))
  return [first, Math.max(first, Math.min(activity.bytes.length, Math.ceil((1 - left) / perView)))]
}

/** The most bytes in a visible bucket. */
export function highestBytes(activity: LaneActivity, view: TimeView): number {
  const [first, last] = shownBuckets(activity, view)
  let highest = 0
  for (let index = first; index < last; index += 1) highest = Math.max(highest, activity.bytes[index] ?? 0)
  return highest
}

/** In a shorter time a packet is not a rate. */
const RATE_MIN_NS = NS_PER_S / 10n

/** "1.2 MiB/s", or "420 B in 10 ms". */
export function bytesOverTime(bytes: number, lengthNs: bigint): string {
  if (lengthNs >= RATE_MIN_NS) return `${bytesText(bytes / secondsOf(lengthNs))}/s`
  const twoFigures = BigInt(Number(Number(lengthNs).toPrecision(2)))
  return `${bytesText(bytes)} in ${durationText(twoFigures)}`
}

/** The instant, as precise as the picture. */
export function pointedInstant(
  ns: bigint,
  { view, widthPx, zone }: { readonly view: TimeView; readonly widthPx: number; readonly zone: Zone },
): string {
  return instantText(ns, zone, digitsOf((view.toNs - view.fromNs) / BigInt(Math.max(1, Math.floor(widthPx)))))
}

/** The values as text, most important first. */
export function valueTexts({ lengthNs, packets, bytes, lost, isGap }: LaneValues): readonly string[] {
  const { timeline: texts } = TEXTS
  const count =
    lengthNs >= RATE_MIN_NS
      ? [`${rateText(packets / secondsOf(lengthNs))} ${texts.packetsPerS}`, bytesOverTime(bytes, lengthNs)]
      : [packetsText(packets), bytesOverTime(bytes, lengthNs)]
  return [
    ...(packets === 0 && isGap ? [texts.inGap] : count),
    ...(lost === 0n ? [] : [`${countText(lost)} ${texts.lost}`]),
  ]
}

function rateText(rate: number): string {
  return rate >= 100 ? countText(Math.round(rate)) : String(Number(rate.toPrecision(2)))
}

function secondsOf(ns: bigint): number {
  return Number(ns) / Number(NS_PER_S)
}
