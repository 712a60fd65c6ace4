/** Which time the store once held and holds no more. Pure. */
import { CapfleetError } from '../../src/shared/base/error.ts'
import type { AgedOutCapture } from './aged-out-list.ts'
import { oldestHeldNs, portsOf, type StoredCapture, selectSegments } from './stored-capture.ts'

/** Half-open. */
export interface TimeSpan {
  readonly beginNs: bigint
  readonly endNs: bigint
}

export interface HeldCaptures {
  /** All of which packets are asked for. */
  readonly captures: readonly StoredCapture[]
  /** Those of the same kind that are gone as a whole. */
  readonly agedOut: readonly AgedOutCapture[]
}

/**
 * From when on nothing of the range has been removed; undefined when all of it is there. Fails with
 * aged-out when the range lies before everything that is held, or nothing of it is left.
 */
export function agedOutBeforeNs(range: TimeSpan, held: HeldCaptures): bigint | undefined {
  const removed = removedSpans(held)
  if (removed.length === 0) return undefined
  const oldestNs = held.captures.reduce<bigint | undefined>(
    (least, capture) => earlier(least, oldestHeldNs(capture)),
    undefined,
  )
  const lost = removed.filter((span) => span.beginNs < range.endNs && span.endNs > range.beginNs)
  const isBeforeAll = oldestNs !== undefined && range.endNs <= oldestNs
  const isGone = lost.length > 0 && !held.captures.some((capture) => holdsSome(capture, range))
  if (isBeforeAll || isGone) throw agedOut(oldestNs)
  return lost.reduce<bigint | undefined>((latest, { endNs }) => {
    return latest === undefined || endNs > latest ? endNs : latest
  }, undefined)
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
  return new CapfleetError('aged-out', `the packets of this range were removed to make room; ${rest}`, {
    members: { oldestNs: String(oldestNs ?? 0n) },
  })
}
