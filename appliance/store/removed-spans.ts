/** Which times the store once held and no longer holds. Pure. */
import { CapfleetError } from '../../src/shared/base/error.ts'
import { minuteAfter, minuteBefore } from '../../src/shared/base/whole-minutes.ts'
import type { AgedOutCapture } from './aged-out-list.ts'
import { oldestHeldNs, portsOf, type StoredCapture, selectSegments } from './stored-capture.ts'

/** Half-open. */
export interface TimeSpan {
  readonly beginNs: bigint
  readonly endNs: bigint
}

export interface HeldCaptures {
  /** Captures all of whose packets are requested. */
  readonly captures: readonly StoredCapture[]
  /** Captures of the same kind that were removed completely. */
  readonly agedOut: readonly AgedOutCapture[]
}

/**
 * The time since which nothing of the range has been removed, or undefined if all of it is there. Fails with aged-out
 * if the range is before everything that is held, or nothing of it is left. What was removed ends with a packet:
 * callers with a forced filter (`isForced`) get the same answer for all ranges in the same minutes, and whole minutes,
 * so that no series of questions reveals the times of packets that the filter hides.
 */
export function agedOutBeforeNs(
  range: TimeSpan,
  held: HeldCaptures,
  { isForced }: { readonly isForced: boolean },
): bigint | undefined {
  if (!isForced) return lostBeforeNs(range, held, (ns) => ns)
  const beginNs = minuteBefore(range.beginNs)
  return lostBeforeNs({ beginNs, endNs: minuteAfter(range.endNs) }, held, minuteAfter)
}

function lostBeforeNs(
  range: TimeSpan,
  held: HeldCaptures,
  shown: (ns: bigint) => bigint,
): bigint | undefined {
  const removed = removedSpans(held)
  if (removed.length === 0) return undefined
  const oldestNs = held.captures.reduce<bigint | undefined>(
    (least, capture) => earlier(least, oldestHeldNs(capture)),
    undefined,
  )
  const lost = removed.filter((span) => span.beginNs < range.endNs && span.endNs > range.beginNs)
  const isBeforeAll = oldestNs !== undefined && range.endNs <= oldestNs
  const isGone = lost.length > 0 && !held.captures.some((capture) => holdsSome(capture, range))
  if (isBeforeAll || isGone) throw agedOut(oldestNs === undefined ? undefined : shown(oldestNs))
  const latestNs = lost.reduce<bigint | undefined>((latest, { endNs }) => {
    return latest === undefined || endNs > latest ? endNs : latest
  }, undefined)
  return latestNs === undefined ? undefined : shown(latestNs)
}

function removedSpans({ captures, agedOut: gone }: HeldCaptures): readonly TimeSpan[] {
  const trimmed = captures.flatMap(({ removed }) => removed ?? [])
  return [...trimmed, ...gone].map(({ startNs, endNs }) => ({ beginNs: startNs, endNs }))
}

function holdsSome(capture: StoredCapture, { beginNs, endNs }: TimeSpan): boolean {
  const span = { fromNs: beginNs, toNs: endNs }
  return portsOf(capture).some((port) => selectSegments(capture, port, span).length > 0)
}

function earlier(a: bigint | undefined, b: bigint | undefined): bigint | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return a < b ? a : b
}

function agedOut(oldestNs: bigint | undefined): CapfleetError {
  const rest =
    oldestNs === undefined ? 'no packets are stored' : `the oldest stored packet is from ${oldestNs} ns`
  return new CapfleetError('aged-out', `the packets of this range were removed by retention; ${rest}`, {
    members: { oldestNs: String(oldestNs ?? 0n) },
  })
}
