/** Between these a stream chooses the size of its read buffers. */
export interface ReadSizeLimits {
  readonly leastBytes: number
  readonly mostBytes: number
}

/** For a stream whose bytes are passed on: few large reads while it is fast, little memory while it is not. */
export const RELAY_READ_SIZE: ReadSizeLimits = { leastBytes: 64 * 1024, mostBytes: 1024 * 1024 }

/** For an input of a merge, of which there may be many; each has up to three buffers. */
export const MERGE_READ_SIZE: ReadSizeLimits = { leastBytes: 128 * 1024, mostBytes: 128 * 1024 }

const FULL_READS_TO_GROW = 8
const STALL_MS = 1_000

/** How large the next read buffer of one stream should be. */
export class ReadSize {
  readonly #limits: ReadSizeLimits
  #bytes: number
  #fullReads = 0

  constructor(limits: ReadSizeLimits) {
    this.#limits = limits
    this.#bytes = limits.leastBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** A read has put `bytes` into a buffer of `capacity`. */
  hasRead(bytes: number, capacity: number): void {
    this.#fullReads = bytes === capacity ? this.#fullReads + 1 : 0
    if (this.#fullReads < FULL_READS_TO_GROW) return
    this.#fullReads = 0
    this.#bytes = Math.min(this.#bytes * 2, this.#limits.mostBytes)
  }

  /** Reading stood still for so long because nobody took the bytes. */
  hasStalled(ms: number): void {
    if (ms < STALL_MS) return
    this.#fullReads = 0
    this.#bytes = this.#limits.leastBytes
  }
}
