/** Which packet stamps come from a clock that was behind, and how much younger those packets are. Pure. */
import type { Correction, Stretch } from '../../store/clock-record.ts'

/**
 * Maximum number of corrections. Beyond it, the two oldest are merged into one that covers both. A packet may then
 * appear younger than it is, but never older.
 */
const CORRECTIONS_MAX = 100
/** Ages are counted in hours at least. */
const LATE_MIN_NS = 1_000_000_000n

/** How much later than its stamp a packet may have been stored; 0 if its stamp is right. */
export function lateness(corrections: readonly Correction[], stampNs: bigint): bigint {
  let mostNs = 0n
  for (const { fromNs, toNs, addNs } of corrections)
    if (fromNs <= stampNs && stampNs <= toNs && addNs > mostNs) mostNs = addNs
  return mostNs
}

/**
 * Applies that the clock is set right, `aheadNs` from where a clock that was trusted until `untilNs` would be now:
 * what was stored by then must not become older or younger because of it.
 */
export function shifted(
  corrections: readonly Correction[],
  aheadNs: bigint,
  untilNs: bigint,
): readonly Correction[] {
  const moved = corrections
    .map(({ addNs, ...range }) => ({ ...range, addNs: addNs + aheadNs }))
    .filter(({ addNs }) => addNs > 0n)
  return aheadNs > 0n ? bounded([...moved, { fromNs: 0n, toNs: untilNs, addNs: aheadNs }]) : moved
}

/**
 * Adds stretches during which the clock was behind, relative to a clock that is `offsetNs` ahead of CLOCK_MONOTONIC.
 */
export function withLate(
  corrections: readonly Correction[],
  stretches: readonly Stretch[],
  offsetNs: bigint,
): readonly Correction[] {
  const late = stretches
    .filter((stretch) => stretch.offsetNs + LATE_MIN_NS < offsetNs)
    .map((stretch) => ({
      fromNs: stretch.firstNs,
      toNs: stretch.lastNs,
      addNs: offsetNs - stretch.offsetNs,
    }))
  return bounded([...corrections, ...late])
}

function bounded(corrections: readonly Correction[]): readonly Correction[] {
  const [first, second, ...rest] = corrections
  if (corrections.length <= CORRECTIONS_MAX || first === undefined || second === undefined) return corrections
  const joined = {
    fromNs: least(first.fromNs, second.fromNs),
    toNs: most(first.toNs, second.toNs),
    addNs: most(first.addNs, second.addNs),
  }
  return bounded([joined, ...rest])
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

function most(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
