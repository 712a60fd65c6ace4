/**
 * Single segments of a store: what one that is still written holds so far, the removal of one, its sieves, and its check.
 * Paths are without ending. The work is done on the engine's threads.
 */
import { loadAddon } from './load-addon.ts'
import { type LogEntry, packLogEntries } from './segment-entry.ts'

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

/** Something wrong with a segment. */
export interface SegmentFinding {
  /**
   * index-rebuilt: index entries are damaged or missing, and can be made again. block-damaged: the packets of a block are
   * lost. block-readable: they were marked as lost, and can be read again. tally-damaged, sieves-missing: no packet is lost, but counts or filters take longer. log-differs: the log of the
   * capture says something else than the index.
   */
  readonly kind:
    | 'index-rebuilt'
    | 'block-damaged'
    | 'block-readable'
    | 'tally-damaged'
    | 'sieves-missing'
    | 'log-differs'
  /** Path of the damaged file. */
  readonly file: string
  /** Of the damage in the file, or of the block in the .pcap file. */
  readonly offset: bigint
  /** That downloads leave out because of it, as far as they are known. */
  readonly packets: bigint
  /** Bytes of the blocks concerned. */
  readonly bytes: bigint
  /** The index and the log tell of the loss already. */
  readonly isMarked: boolean
  /** What is wrong, and what a repair does. */
  readonly message: string
}

export interface VerifiedSegment
  extends Pick<LogEntry, 'flags' | 'minNs' | 'maxNs' | 'packets' | 'bytes' | 'sideBytes'> {
  readonly findings: readonly SegmentFinding[]
  /** Something was wrong and is no more, but for the log: it should say what the other members do. */
  readonly isRepaired: boolean
}

interface NativeVerification {
  readonly finished: Promise<VerifiedSegment>
  checkedBytes(): bigint
  cancel(): void
}

const engine = loadAddon<{
  measureSegment(segment: string, known: SegmentExtent | undefined): Promise<SegmentExtent>
  measureFinishedSegment(segment: string): Promise<SegmentExtent>
  takeSuspects(): readonly string[]
  removeSegment(segment: string, evenIfRead: boolean): Promise<boolean>
  addSieves(segment: string): { readonly finished: Promise<bigint>; cancel(): void }
  verifySegment(segment: string, entry: Uint8Array, repairs: boolean): NativeVerification
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
 * The extent of a segment that its writer has ended, where nothing but its files is left: all of the .pcap file has an
 * entry in the index, is made one again, or counts as damaged. Rejects as measureSegment().
 */
export function measureFinishedSegment(segment: string): Promise<SegmentExtent> {
  return engine.measureFinishedSegment(segment)
}

/**
 * Segments in which downloads of this process met damage that neither their index nor the log tells of, since the last
 * call: the store's writer should check them.
 */
export function takeSuspects(): readonly string[] {
  return engine.takeSuspects()
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

/**
 * Checks every block, tally and sieve of a finished segment, and that its entry in the log agrees, with a lower priority
 * than all other work of this machine. With `repair`, index, tallies and sieves are made again and damaged blocks are
 * marked in the index; the packets themselves are never changed. It may be interrupted and done again, but not twice at
 * once for a segment. Rejects with aged-out when the segment is gone, with store-full, store-unavailable, store-corrupt,
 * or the signal's reason.
 */
export async function verifySegment(
  segment: string,
  entry: LogEntry,
  options: {
    readonly repair: boolean
    readonly signal?: AbortSignal | undefined
    /** Called about five times a second with the bytes of the segment that were checked so far. */
    readonly onProgress?: ((checkedBytes: bigint) => void) | undefined
  },
): Promise<VerifiedSegment> {
  const { repair, signal, onProgress } = options
  signal?.throwIfAborted()
  const job = engine.verifySegment(segment, packLogEntries([entry]), repair)
  const cancel = (): void => job.cancel()
  signal?.addEventListener('abort', cancel, { once: true })
  const timer = onProgress && setInterval(() => onProgress(job.checkedBytes()), PROGRESS_INTERVAL_MS)
  try {
    return await job.finished
  } catch (error) {
    signal?.throwIfAborted()
    throw error
  } finally {
    clearInterval(timer)
    signal?.removeEventListener('abort', cancel)
  }
}

const PROGRESS_INTERVAL_MS = 200
