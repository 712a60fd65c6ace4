/** Merged packets on their way into the files of an export. */
import type { WrittenInterface } from '../../gateway/export/export-record.ts'

/** What was written to a file. */
export interface PacketCounts {
  readonly packets: number
  readonly bytes: number
  /** The earliest and the latest time: packets of a single device may be out of order. */
  readonly firstNs: bigint
  readonly lastNs: bigint
}

/** How much may be taken for one file. */
export interface TakeLimit {
  /** Bytes that are left in the file. */
  readonly maxBytes: number
  /** Whether at least one packet is taken, however long it is. */
  readonly takesOne: boolean
}

/** What the end of a file depends on. */
export interface EndedFile {
  readonly packets: bigint
  /** The latest time; undefined if it has no packets. */
  readonly lastNs: bigint | undefined
  /** Its bytes before compression. */
  readonly bytes: number
  /** Bytes that are left in the file. */
  readonly maxBytes: number
}

export interface PacketSource extends AsyncDisposable {
  /** Whether packets are left. */
  readonly hasMore: boolean
  /** Of pcapng: the interfaces of the current file. */
  readonly interfaces?: readonly WrittenInterface[]
  /**
   * Yields `first`, then packets until the next one would exceed `maxBytes`. `first` is not empty for a new file. Its
   * chunks are valid until the second one after them is requested. Returns the counts.
   */
  take(
    first: Uint8Array,
    limit: TakeLimit,
    onCounts: (counts: PacketCounts) => void,
  ): AsyncGenerator<Uint8Array, void>
  /** What follows the last packet of the current file. Default: nothing. */
  closing?(file: EndedFile): Buffer
}
