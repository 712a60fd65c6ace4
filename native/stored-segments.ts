/**
 * Single segments of a store: what one that is still written holds so far, the removal of one, and its sieves.
 * Paths are without ending. The work is done on the engine's threads.
 */
import { loadAddon } from './load-addon.ts'

/** What the index of a segment says; only blocks that can be downloaded are counted. */
export interface SegmentExtent {
  readonly port: number
  /** Link type word and snaplen of the segment. */
  readonly linkType: number
  readonly snaplen: number
  /** The smallest and the largest timestamp; meaningless while there is no packet. */
  readonly minNs: bigint
  readonly maxNs: bigint
  readonly packets: bigint
  /** Of the segment file, file header included. */
  readonly bytes: bigint
  /** Blocks of which only the place is known; the other figures leave them out. */
  readonly damagedBlocks: bigint
  /** Of the index, read so far. */
  readonly indexBytes: bigint
}

const engine = loadAddon<{
  measureSegment(segment: string, known: SegmentExtent | undefined): Promise<SegmentExtent>
  removeSegment(segment: string, evenIfRead: boolean): Promise<boolean>
  addSieves(segment: string): { readonly finished: Promise<bigint>; cancel(): void }
}>('capfleet')

/**
 * Brings `known`, an earlier answer for the same segment, up to date: only the new end of the index
 * is read. Damaged entries are made again from the packets, in memory. Rejects with aged-out when the segment is gone,
 * with store-unavailable, or with store-corrupt when nothing tells its link type.
 */
export function measureSegment(segment: string, known?: SegmentExtent): Promise<SegmentExtent> {
  return engine.measureSegment(segment, known)
}

/**
 * Removes the files of the segment and frees their space. False, and nothing is done, when somebody
 * reads it and not `evenIfRead`; such a reader then fails with aged-out. Rejects with
 * store-unavailable.
 */
export function removeSegment(
  segment: string,
  { evenIfRead }: { readonly evenIfRead: boolean },
): Promise<boolean> {
  return engine.removeSegment(segment, evenIfRead)
}

/**
 * Writes the sieves that blocks of the finished segment lack, behind all other work of this machine;
 * says how many these were. It may be interrupted and done again. Rejects with aged-out when the
 * segment is gone, with store-full, store-unavailable, store-corrupt, or the signal's reason.
 */
export async function addSieves(segment: string, signal: AbortSignal): Promise<bigint> {
  signal.throwIfAborted()
  const job = engine.addSieves(segment)
  const cancel = (): void => job.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    return await job.finished
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}
