/** Data from devices is read into large buffers that are reused; this decides how large. */
import { BufferPool } from '../../shared/base/buffer-pool.ts'

const KEPT_BYTES_MAX = 32 * 1024 * 1024

/** Shared by all connections of the process: one buffer per read, from takeReadBuffer(). */
export const READ_BUFFERS = new BufferPool(KEPT_BYTES_MAX)

/**
 * Once all connections together hold this much, each gets only its minimum: large buffers save time, but clients that
 * read nothing, however many, must not turn that into memory.
 */
export const LARGE_READS_UNTIL_BYTES = 128 * 1024 * 1024

/** The limits for the size of a connection's read buffers. */
export interface ReadSizeLimits {
  readonly leastBytes: number
  readonly mostBytes: number
}

/** For a stream that is forwarded: a few large reads while it is fast, little memory while it is not. */
export const RELAY_READ_SIZE: ReadSizeLimits = { leastBytes: 64 * 1024, mostBytes: 1024 * 1024 }

/** For an input of a merge, of which there may be many; each has up to three buffers. */
export const MERGE_READ_SIZE: ReadSizeLimits = { leastBytes: 128 * 1024, mostBytes: 1024 * 1024 }

/** For answers to questions, which are short texts and some long lists; an idle connection holds one buffer. */
export const ANSWER_READ_SIZE: ReadSizeLimits = { leastBytes: 4 * 1024, mostBytes: 64 * 1024 }

/** A full read may have left more to read; a single small read does not show that a buffer is too large. */
const SMALL_READS_TO_SHRINK = 8
/** If a buffer is held for this long, little data flows: larger reads would cost memory and save nothing. */
const SLOW_MS = 100

/** One read whose buffer is no longer needed. */
export interface PassedRead {
  readonly bytes: number
  /** Size of the buffer. */
  readonly capacity: number
  readonly heldMs: number
}

/** Chooses the size of a connection's next read buffer. */
export class ReadSize {
  readonly #limits: ReadSizeLimits
  #bytes: number
  /** Number of consecutive reads that a buffer of a quarter of the size would have held. */
  #smallReads = 0

  constructor(limits: ReadSizeLimits) {
    this.#limits = limits
    this.#bytes = limits.leastBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  get leastBytes(): number {
    return this.#limits.leastBytes
  }

  hasPassed({ bytes, capacity, heldMs }: PassedRead): void {
    const { leastBytes, mostBytes } = this.#limits
    // Doubles the present size, not `capacity`: a buffer from before a stall says nothing about what follows.
    if (bytes === capacity) this.#bytes = Math.min(this.#bytes * 2, mostBytes)
    this.#smallReads = bytes * 4 <= capacity ? this.#smallReads + 1 : 0
    if (heldMs >= SLOW_MS) this.#bytes = leastBytes
    if (this.#smallReads < SMALL_READS_TO_SHRINK) return
    this.#smallReads = 0
    this.#bytes = Math.max(this.#bytes / 2, leastBytes)
  }
}

/** The buffer for the next read of a connection; return it to READ_BUFFERS. */
export function takeReadBuffer({ bytes, leastBytes }: ReadSize): Buffer {
  const isCrowded = READ_BUFFERS.takenBytes + bytes > LARGE_READS_UNTIL_BYTES
  return READ_BUFFERS.take(isCrowded ? leastBytes : bytes)
}
