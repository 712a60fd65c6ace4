/** The span of time that the timeline shows, and where its instants lie. Nanoseconds are exact at every zoom. */
import { clockText, instantText, NS_PER_S, type Zone } from '../base/instants.ts'

export interface TimeView {
  readonly fromNs: bigint
  readonly toNs: bigint
}

/** PCAP counts seconds in 32 bits. */
const LIMIT_NS = 4_294_967_296n * NS_PER_S
/** Below it, a pixel of a wide screen would be less than a nanosecond. */
const SPAN_MIN_NS = 4_000n

/** The instant at a place from 0 to 1 of the view. */
export function instantAt({ fromNs, toNs }: TimeView, ratio: number): bigint {
  // A ratio has fewer digits than a long span has nanoseconds: in parts of 2^40 it is exact to a pixel and beyond.
  const PARTS = 1_099_511_627_776
  return fromNs + ((toNs - fromNs) * BigInt(Math.round(ratio * PARTS))) / BigInt(PARTS)
}

/** The place of an instant, from 0 to 1 inside the view. */
export function placeOf({ fromNs, toNs }: TimeView, ns: bigint): number {
  return Number(ns - fromNs) / Number(toNs - fromNs)
}

/** Shows `factor` times the span, with the instant staying where it is. */
export function zoomed(view: TimeView, factor: number, aroundNs: bigint): TimeView {
  const span = view.toNs - view.fromNs
  const wanted = BigInt(Math.round(Number(span) * factor))
  const next = wanted < SPAN_MIN_NS ? SPAN_MIN_NS : wanted > LIMIT_NS ? LIMIT_NS : wanted
  const fromNs = aroundNs - ((aroundNs - view.fromNs) * next) / span
  return within({ fromNs, toNs: fromNs + next })
}

/** Moves by a part of the span. */
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

/** All of a range with some room at its sides. */
export function viewAround(beginNs: bigint, endNs: bigint): TimeView {
  const span = endNs - beginNs < SPAN_MIN_NS ? SPAN_MIN_NS : endNs - beginNs
  return within({ fromNs: beginNs - span / 10n, toNs: endNs + span / 10n })
}

export interface Tick {
  readonly ns: bigint
  readonly label: string
  /** The first of a day. */
  readonly isMajor: boolean
}

const STEPS_NS: readonly bigint[] = [
  ...Array.from({ length: 9 }, (_, power) =>
    [1n, 2n, 5n].map((digit) => digit * 10n ** BigInt(power)),
  ).flat(),
  ...[1n, 2n, 5n, 10n, 15n, 30n, 60n, 120n, 300n, 600n, 900n, 1_800n].map((seconds) => seconds * NS_PER_S),
  ...[1n, 2n, 3n, 6n, 12n, 24n, 48n, 168n, 336n, 720n, 2_160n, 8_760n, 43_800n].map(
    (hours) => hours * 3_600n * NS_PER_S,
  ),
]
const DAY_NS = 86_400n * NS_PER_S

/** Marks of the time axis at round times of the zone, about `count` of them. */
export function ticksOf(view: TimeView, zone: Zone, count: number): readonly Tick[] {
  const wanted = (view.toNs - view.fromNs) / BigInt(Math.max(1, Math.floor(count)))
  const step = STEPS_NS.find((candidate) => candidate >= wanted) ?? DAY_NS * 3_650n
  const offset = zoneOffsetNs(view.fromNs, zone)
  const ticks: Tick[] = []
  let local = ((view.fromNs + offset) / step + 1n) * step
  for (; local - offset <= view.toNs && ticks.length < 200; local += step) {
    const ns = local - offset
    const isMajor = step >= DAY_NS || local % DAY_NS === 0n
    ticks.push({
      ns,
      isMajor,
      label: isMajor
        ? instantText(ns, zone, 0).slice(0, 10)
        : clockText(ns, zone, digitsOf(step)).slice(0, step >= 60n * NS_PER_S ? 5 : undefined),
    })
  }
  return ticks
}

/** As many digits as tell two neighbours apart. */
export function digitsOf(stepNs: bigint): number {
  if (stepNs >= NS_PER_S) return 0
  return Math.min(9, Math.max(1, 10 - String(stepNs).length))
}

function zoneOffsetNs(ns: bigint, zone: Zone): bigint {
  if (zone === 'UTC') return 0n
  const seconds = ns / NS_PER_S
  const shown = Date.parse(`${instantText(ns, zone, 0).replace(' ', 'T')}Z`) / 1_000
  return (BigInt(shown) - seconds) * NS_PER_S
}
