/**
 * Single segments of a store: the present extent of one that is being written, removal, sieves, addresses, and
 * checks. Paths are without extension. The work is done on the engine's threads.
 */
import { loadAddon } from './load-addon.ts'
import { type LogEntry, packLogEntries } from './segment-entry.ts'
import { type NativeJob, untilAborted } from './until-aborted.ts'

/** The contents of a segment according to its index; only blocks that can be downloaded are counted. */
export interface SegmentExtent {
  readonly port: number
  /** Link type word and snaplen of the segment. */
  readonly linkType: number
  readonly snaplen: number
  /** The smallest and the largest timestamp; meaningless if there are no packets. */
  readonly minNs: bigint
  readonly maxNs: bigint
  readonly packets: bigint
  /** Size of the segment file, including the file header. */
  readonly bytes: bigint
  /** Blocks of which only the position is known; the other figures exclude them. */
  readonly damagedBlocks: bigint
  /** Of its blocks, as in a LogEntry. */
  readonly checksum: number
  /** Bytes of the index, read so far. */
  readonly indexBytes: bigint
}

/** A problem with a segment. */
export interface SegmentFinding {
  /**
   * index-rebuilt: index entries are damaged or missing, and can be rebuilt. block-damaged: the packets of a block are
   * lost. block-readable: they were marked as lost, and are readable again. tally-damaged, sieves-missing: no packet
   * is lost, but counts or filters take longer. addresses-wrong: the table of addresses is of other packets, and filters
   * for addresses may miss some. log-differs: the log of the capture contradicts the index.
   */
  readonly kind:
    | 'index-rebuilt'
    | 'block-damaged'
    | 'block-readable'
    | 'tally-damaged'
    | 'sieves-missing'
    | 'addresses-wrong'
    | 'log-differs'
  /** Path of the damaged file. */
  readonly file: string
  /** Offset of the damage in the file, or of the block in the .pcap file. */
  readonly offset: bigint
  /** Number of packets that downloads leave out because of it, as far as known. */
  readonly packets: bigint
  /** Bytes of the blocks concerned. */
  readonly bytes: bigint
  /** Whether the index and the log record the loss already. */
  readonly isMarked: boolean
  /** What is wrong, and what a repair does. */
  readonly message: string
}

export interface VerifiedSegment
  extends Pick<LogEntry, 'flags' | 'minNs' | 'maxNs' | 'packets' | 'bytes' | 'sideBytes' | 'checksum'> {
  readonly findings: readonly SegmentFinding[]
  /**
   * Whether something was wrong and has been repaired, except for the log, which should be changed to what the other
   * members say.
   */
  readonly isRepaired: boolean
}

interface NativeVerification extends NativeJob<VerifiedSegment> {
  checkedBytes(): bigint
}

const engine = loadAddon<{
  measureSegment(segment: string, known: SegmentExtent | undefined): Promise<SegmentExtent>
  measureFinishedSegment(segment: string): Promise<SegmentExtent>
  takeSuspects(): readonly string[]
  removeSegment(segment: string, evenIfRead: boolean): Promise<boolean>
  addSieves(segment: string): NativeJob<bigint>
  repairAddresses(segment: string): NativeJob<boolean>
  transposeAddresses(segment: string): Promise<void>
  verifySegment(segment: string, entry: Uint8Array, repairs: boolean): NativeVerification
}>('capfleet')

/**
 * Updates `known`, an earlier result for the same segment: only the new end of the index is read. Damaged entries are
 * rebuilt from the packets, in memory. Rejects with aged-out if the segment no longer exists, with store-unavailable,
 * or with store-corrupt if its link type cannot be determined.
 */
export function measureSegment(segment: string, known?: SegmentExtent): Promise<SegmentExtent> {
  return engine.measureSegment(segment, known)
}

/**
 * The extent of a segment that its writer has ended, if nothing but its files is left: every part of the .pcap file
 * has an entry in the index, gets one rebuilt, or counts as damaged. Rejects like measureSegment().
 */
export function measureFinishedSegment(segment: string): Promise<SegmentExtent> {
  return engine.measureFinishedSegment(segment)
}

/**
 * Segments in which downloads of this process found damage that neither their index nor the log records, since the
 * last call: the store's writer should check them.
 */
export function takeSuspects(): readonly string[] {
  return engine.takeSuspects()
}

/**
 * Removes the files of the segment and frees their space. Returns false, without doing anything, if it is being read
 * and not `evenIfRead`; otherwise such a reader fails with aged-out. Rejects with store-unavailable.
 */
export function removeSegment(
  segment: string,
  { evenIfRead }: { readonly evenIfRead: boolean },
): Promise<boolean> {
  return engine.removeSegment(segment, evenIfRead)
}

/**
 * Writes the missing sieves of blocks of the finished segment, at the lowest priority on this machine; returns how
 * many. May be interrupted and repeated. Rejects with aged-out if the segment no longer exists, with store-full,
 * store-unavailable, store-corrupt, or the signal's reason.
 */
export function addSieves(segment: string, signal: AbortSignal): Promise<bigint> {
  return untilAborted(() => engine.addSieves(segment), signal)
}

/**
 * Adds the addresses of the finished segment to the table of its port, at the lowest priority on this machine. Returns
 * false if they are there, or if nothing can be said about the segment. May be interrupted and repeated. Rejects like
 * addSieves().
 */
export function repairAddresses(segment: string, signal: AbortSignal): Promise<boolean> {
  return untilAborted(() => engine.repairAddresses(segment), signal)
}

/** Number of segments whose addresses are in one table. */
const SEGMENTS_PER_ADDRESS_TABLE = 64

/** Whether the segment with this number is the last of a table of addresses: it is then time to transpose it. */
export function completesAddressTable(number: number): boolean {
  return (number + 1) % SEGMENTS_PER_ADDRESS_TABLE === 0
}

/**
 * Rewrites the table of addresses that this segment is in so that a question reads only a small part of it, at the
 * lowest priority on this machine. Nothing happens if there is none, or if that was done. Rejects with store-full or
 * store-unavailable; the table stays correct.
 */
export function transposeAddresses(segment: string): Promise<void> {
  return engine.transposeAddresses(segment)
}

/**
 * Checks every block, tally and sieve of a finished segment, and that its entry in the log agrees, at the lowest
 * priority on this machine. With `repair`, index, tallies and sieves are rebuilt and damaged blocks are marked in the
 * index; the packets themselves are never changed. May be interrupted and repeated, but not run twice concurrently for
 * a segment. Rejects with aged-out if the segment no longer exists, with store-full, store-unavailable, store-corrupt,
 * or the signal's reason.
 */
export async function verifySegment(
  segment: string,
  entry: LogEntry,
  options: {
    readonly repair: boolean
    readonly signal?: AbortSignal | undefined
    /** Called about five times a second with the number of bytes of the segment that have been checked so far. */
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
