/** Which segment goes first. Pure. */
import type { CaptureRecord, StreamRecord } from '../store/capture-record.ts'
import type { SegmentOfPort } from '../store/trimmed-record.ts'

/** A finished segment that may be removed. */
export interface Candidate extends SegmentOfPort {
  readonly capture: CaptureRecord
  /** When its newest packet was recorded, or it was imported. */
  readonly storedNs: bigint
}

/**
 * The older capture first (by its creation), in it what was recorded earlier; the segments of a port
 * always in their order, also where the clock went back.
 */
export function removalOrder(captures: readonly CaptureRecord[]): Candidate[] {
  return captures
    .toSorted(byCreation)
    .flatMap((capture) =>
      capture.streams
        .flatMap((stream) => candidatesOf(capture, stream))
        .toSorted((a, b) => compare(a.storedNs, b.storedNs) || a.port - b.port || order(a) - order(b)),
    )
}

/** The last finished segment of an active capture stays: the next one gets its number by it. */
function candidatesOf(capture: CaptureRecord, { port, segments }: StreamRecord): Candidate[] {
  let storedNs = createdNs(capture)
  const finished = capture.state === 'active' ? segments.slice(0, -1) : segments
  return finished.map((segment) => {
    // An imported packet is as old as its import: its own time may lie years back.
    if (capture.type === 'capture' && segment.maxNs > storedNs) storedNs = segment.maxNs
    return { capture, port, segment, storedNs }
  })
}

export function createdNs({ createdAt }: CaptureRecord): bigint {
  return BigInt(Date.parse(createdAt)) * 1_000_000n
}

/** When anything was stored last, as far as the records say; undefined: they have nothing. */
export function newestStoredNs(captures: readonly CaptureRecord[]): bigint | undefined {
  const times = captures.map((capture) => {
    const created = createdNs(capture)
    return capture.type === 'capture' && capture.endNs > created ? capture.endNs : created
  })
  return times.reduce<bigint | undefined>(
    (newest, ns) => (newest === undefined || ns > newest ? ns : newest),
    undefined,
  )
}

function order({ segment }: SegmentOfPort): number {
  return segment.number
}

function byCreation(a: CaptureRecord, b: CaptureRecord): number {
  return compare(createdNs(a), createdNs(b)) || (a.name < b.name ? -1 : 1)
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
