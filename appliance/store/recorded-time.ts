/**
 * When a device was recording and when not, and what it lost: from its records of captures, and from its events. Pure.
 */
import type { HeldCaptures, TimeSpan } from './removed-spans.ts'
import { type StoredCapture, segmentsOf } from './stored-capture.ts'

/** One of the recorder's events, as far as they are kept. */
export interface TimedEvent {
  /** Epoch nanoseconds. */
  readonly TS: string
  readonly Kind: string
  readonly [member: string]: unknown
}

export interface RecordedTime extends HeldCaptures {
  readonly events: readonly TimedEvent[]
  /** Full name of the running capture; undefined: none is running, or no recorder answers. */
  readonly running: string | undefined
  readonly nowNs: bigint
}

export interface DroppedSpan extends TimeSpan {
  readonly packets: bigint
}

/** Losses are reported at most this long after they have begun. */
const DROPS_TOLD_NS = 1_000_000_000n

/**
 * When nothing was recorded, until now: neither what is stored nor what has been removed since. Gaps inside the range
 * that are no longer than `apartNs` are left out, since many captures would produce many.
 */
export function gapsIn(range: TimeSpan, apartNs: bigint, recorded: RecordedTime): readonly TimeSpan[] {
  const endNs = recorded.nowNs < range.endNs ? recorded.nowNs : range.endNs
  const resumed = byCapture('capture-resumed', recorded.events)
  const spans = [
    ...recorded.captures.flatMap((capture) => spansOf(capture, resumed.get(capture.name) ?? [], recorded)),
    ...removedSpans(recorded),
  ]
  const gaps: TimeSpan[] = []
  let fromNs = range.beginNs
  for (const span of joined(spans, apartNs)) {
    if (span.beginNs >= endNs) break
    if (span.beginNs > fromNs) gaps.push({ beginNs: fromNs, endNs: span.beginNs })
    if (span.endNs > fromNs) fromNs = span.endNs
  }
  if (fromNs < endNs) gaps.push({ beginNs: fromNs, endNs })
  return gaps
}

/**
 * Where packets were removed to make room. Others of the same time may still exist. Spans no further apart than
 * `apartNs` are joined.
 */
export function trimmedIn(range: TimeSpan, apartNs: bigint, recorded: HeldCaptures): readonly TimeSpan[] {
  return spansIn(range, apartNs, removedSpans(recorded))
}

/** The parts of the spans in the range; those no further apart than `apartNs` are joined. */
export function spansIn(range: TimeSpan, apartNs: bigint, spans: readonly TimeSpan[]): readonly TimeSpan[] {
  return joined(spans, apartNs).flatMap((span) => within(range, span) ?? [])
}

/**
 * Where packets arrived and could not be stored. Losses no further apart than `apartNs` are joined; those without an
 * event any more are reported as lost somewhere in their capture.
 */
export function dropsIn(range: TimeSpan, apartNs: bigint, recorded: RecordedTime): readonly DroppedSpan[] {
  const drops: DroppedSpan[] = []
  for (const drop of [...toldDrops(recorded), ...untoldDrops(recorded)].sort(byBegin)) {
    const clipped = within(range, drop)
    if (clipped === undefined) continue
    const last = drops.at(-1)
    if (last === undefined || clipped.beginNs - last.endNs > apartNs) {
      drops.push({ ...clipped, packets: drop.packets })
    } else {
      const endNs = clipped.endNs > last.endNs ? clipped.endNs : last.endNs
      drops[drops.length - 1] = { beginNs: last.beginNs, endNs, packets: last.packets + drop.packets }
    }
  }
  return drops
}

/** When the capture accepted packets: without the times in which no recorder was running. */
function spansOf(
  capture: StoredCapture,
  resumed: readonly TimedEvent[],
  { running, nowNs }: RecordedTime,
): readonly TimeSpan[] {
  const endNs = capture.name === running && nowNs > capture.endNs ? nowNs : capture.endNs
  if (resumed.length === 0) return [{ beginNs: capture.startNs, endNs }]
  // The events' clock may differ from that of the packets: no gap is reported where there are packets.
  const spans: TimeSpan[] = heldSpans(capture)
  const endsNs = spans.map((span) => span.endNs).sort(ascending)
  let beginNs = capture.startNs
  for (const { TS } of resumed) {
    const resumedNs = BigInt(TS)
    spans.push({ beginNs, endNs: lastUpTo(resumedNs, endsNs) ?? beginNs })
    beginNs = resumedNs
  }
  return [...spans, { beginNs, endNs }]
}

function heldSpans(capture: StoredCapture): TimeSpan[] {
  return Array.from(segmentsOf(capture), ({ minNs, maxNs }) => ({ beginNs: minNs, endNs: maxNs + 1n }))
}

/** The last of `timesNs`, in ascending order, that is not after `ns`. */
function lastUpTo(ns: bigint, timesNs: readonly bigint[]): bigint | undefined {
  let [low, high] = [0, timesNs.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((timesNs[middle] ?? 0n) <= ns) low = middle + 1
    else high = middle
  }
  return timesNs[low - 1]
}

function toldDrops({ events }: RecordedTime): readonly DroppedSpan[] {
  return events
    .filter(({ Kind }) => Kind === 'packets-dropped')
    .map((event) => {
      const endNs = BigInt(event.TS)
      return { beginNs: endNs - DROPS_TOLD_NS, endNs, packets: packetsOf(event) }
    })
}

function untoldDrops({ captures, events }: RecordedTime): readonly DroppedSpan[] {
  const told = byCapture('packets-dropped', events)
  return captures.flatMap((capture) => {
    const { name, drops, startNs, endNs } = capture
    if (drops === undefined) return []
    const known = (told.get(name) ?? []).reduce((sum, event) => sum + packetsOf(event), 0n)
    const packets = drops.ring + drops.disk - known
    return packets > 0n ? [{ beginNs: startNs, endNs, packets }] : []
  })
}

/** Events of a kind by the name of their capture, in order. */
function byCapture(kind: string, events: readonly TimedEvent[]): ReadonlyMap<unknown, readonly TimedEvent[]> {
  return Map.groupBy(
    events.filter(({ Kind }) => Kind === kind),
    ({ name }) => name,
  )
}

function packetsOf({ packets }: TimedEvent): bigint {
  return typeof packets === 'string' && /^\d{1,20}$/.test(packets) ? BigInt(packets) : 0n
}

function removedSpans({ captures, agedOut }: HeldCaptures): readonly TimeSpan[] {
  const removed = captures.flatMap((capture) => capture.removed ?? [])
  return [...removed, ...agedOut].map(({ startNs, endNs }) => ({ beginNs: startNs, endNs }))
}

/** Sorted by time; those that touch, or are no further apart, are joined; empty ones are dropped. */
function joined(spans: readonly TimeSpan[], apartNs: bigint): readonly TimeSpan[] {
  const result: TimeSpan[] = []
  for (const span of spans.filter(({ beginNs, endNs }) => beginNs < endNs).sort(byBegin)) {
    const last = result.at(-1)
    if (last === undefined || span.beginNs - last.endNs > apartNs) result.push(span)
    else if (span.endNs > last.endNs) result[result.length - 1] = { beginNs: last.beginNs, endNs: span.endNs }
  }
  return result
}

/** Returns undefined if no part of the span lies in the range. */
function within(range: TimeSpan, { beginNs, endNs }: TimeSpan): TimeSpan | undefined {
  const fromNs = beginNs > range.beginNs ? beginNs : range.beginNs
  const toNs = endNs < range.endNs ? endNs : range.endNs
  return fromNs < toNs ? { beginNs: fromNs, endNs: toNs } : undefined
}

function byBegin(a: TimeSpan, b: TimeSpan): number {
  return ascending(a.beginNs, b.beginNs)
}

function ascending(a: bigint, b: bigint): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
