/** Which segment goes first. Pure. */
import type { LogEntry } from '../../native/segment-entry.ts'
import type { PortSegments } from '../store/segment-table.ts'
import { entriesOf, type StoredCapture } from '../store/stored-capture.ts'

/** A finished segment that may be removed. */
export interface Candidate {
  readonly capture: StoredCapture
  readonly segment: LogEntry
  /** When its newest packet was recorded, or it was imported. */
  readonly storedNs: bigint
}

/**
 * The older capture first (by its creation), in it what was recorded earlier; the segments of a port
 * always in their order, also where the clock went back.
 */
export function removalOrder(captures: readonly StoredCapture[]): Candidate[] {
  return captures
    .toSorted(byCreation)
    .flatMap((capture) =>
      capture.table.ports
        .flatMap((port) => candidatesOf(capture, port))
        .toSorted((a, b) => compare(a.storedNs, b.storedNs) || portOf(a) - portOf(b) || order(a) - order(b)),
    )
}

/** The last finished segment of an active capture stays: the next one gets its number by it. */
function candidatesOf(capture: StoredCapture, port: PortSegments): Candidate[] {
  let storedNs = createdNs(capture)
  const segments = [...entriesOf(port)]
  const finished = capture.state === 'active' ? segments.slice(0, -1) : segments
  return finished.map((segment) => {
    // An imported packet is as old as its import: its own time may lie years back.
    if (capture.type === 'capture' && segment.maxNs > storedNs) storedNs = segment.maxNs
    return { capture, segment, storedNs }
  })
}

export function createdNs({ createdAt }: Pick<StoredCapture, 'createdAt'>): bigint {
  return BigInt(Date.parse(createdAt)) * 1_000_000n
}

function portOf({ segment }: Candidate): number {
  return segment.port
}

function order({ segment }: Candidate): number {
  return segment.number
}

function byCreation(a: StoredCapture, b: StoredCapture): number {
  return compare(createdNs(a), createdNs(b)) || (a.name < b.name ? -1 : 1)
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
