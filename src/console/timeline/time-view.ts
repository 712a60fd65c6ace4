/**
 * The time range that the timeline shows, and positions of instants in it. Nanoseconds are exact at every zoom level.
 */
import { NS_PER_S } from '../base/instants.ts'

export interface TimeView {
  readonly fromNs: bigint
  readonly toNs: bigint
}

/** PCAP counts seconds in 32 bits. */
const LIMIT_NS = 4_294_967_296n * NS_PER_S
/** Below it, a pixel of a wide screen would be less than a nanosecond. */
const SPAN_MIN_NS = 4_000n

/** The instant at a position from 0 to 1 of the view. */
export function instantAt({ fromNs, toNs }: TimeView, ratio: number): bigint {
  // A ratio has fewer digits than a long range has nanoseconds: in units of 2^-40 it is more precise than a pixel.
  const PARTS = 1_099_511_627_776
  return fromNs + ((toNs - fromNs) * BigInt(Math.round(ratio * PARTS))) / BigInt(PARTS)
}

/** The position of an instant, from 0 to 1 inside the view. */
export function placeOf({ fromNs, toNs }: TimeView, ns: bigint): number {
  return Number(ns - fromNs) / Number(toNs - fromNs)
}

/** Multiplies the range by `factor`, keeping the position of the instant. */
export function zoomed(view: TimeView, factor: number, aroundNs: bigint): TimeView {
  const span = view.toNs - view.fromNs
  const wanted = BigInt(Math.round(Number(span) * factor))
  const next = wanted < SPAN_MIN_NS ? SPAN_MIN_NS : wanted > LIMIT_NS ? LIMIT_NS : wanted
  const fromNs = aroundNs - ((aroundNs - view.fromNs) * next) / span
  return within({ fromNs, toNs: fromNs + next })
}

/** Moves by a fraction of the range. */
export function moved(view: TimeView, ratio: number): TimeView {
  const by = BigInt(Math.round(Number(view.toNs - view.fromNs) * ratio))
  return within({ fromNs: view.fromNs + by, toNs: view.toNs + by })
}

function within({ fromNs, toNs }: TimeView): TimeView {
  const span = toNs - fromNs
  if (fromNs < 0n) return { fromNs: 0n, toNs: span }
  if (toNs > LIMIT_NS) return { fromNs: LIMIT_NS - span, toNs: LIMIT_NS }
  return { fromNs, toNs }
}

/** All of a range with some margin on both sides. */
export function viewAround(beginNs: bigint, endNs: bigint): TimeView {
  const span = endNs - beginNs < SPAN_MIN_NS ? SPAN_MIN_NS : endNs - beginNs
  return within({ fromNs: beginNs - span / 10n, toNs: endNs + span / 10n })
}

/** The view between two instants in either order. */
export function ordered(a: bigint, b: bigint): TimeView {
  return a <= b ? { fromNs: a, toNs: b } : { fromNs: b, toNs: a }
}
