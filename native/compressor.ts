/**
 * TypeScript interface to the engine's compression of arbitrary byte streams. The engine's threads compress the bytes
 * in gzip members of 1 MiB or zstd frames of 8 MiB (zstd_ultra: 4 MiB), by default at least two at a time.
 */
import { COMPRESSION_LEVELS, type Compression } from './compression.ts'
import { loadAddon } from './load-addon.ts'

interface NativeCompressor {
  write(bytes: Uint8Array): number
  flush(): void
  end(): void
  /** A slab has one Buffer for all its life; the part is its first `length` bytes. */
  next(): Promise<{ readonly slab: Buffer; readonly length: number } | undefined>
  close(): void
}

const engine = loadAddon<{
  readonly Compressor: new (codec: number, level: number, hasSmallGroups: boolean) => NativeCompressor
}>('capfleet-gateway')

export interface CompressorOptions {
  /**
   * Compresses one group of 1 MiB at a time: with zstd the output is up to 30 % larger, and it takes at most 6 MiB of
   * memory.
   */
  readonly hasSmallGroups?: boolean
}

/** A reader that waits for a part gets what there is after this time, as in a download of the engine. */
const PATIENCE_MS = 100

/**
 * Bytes are written by one loop while another takes the parts of the compressed stream. Uses up to 7 MiB with gzip on
 * two CPUs (2 more for each further one, up to 35 MiB) and 44 MiB with zstd (78 MiB with four CPUs or more), and frees
 * all but the last two parts when it is closed. The additional 70 MiB for zstd_ultra belong to the worker thread, once
 * per core.
 */
export class Compressor implements Disposable {
  readonly #native: NativeCompressor
  #isClosed = false
  /** Resolved when a part was taken, which makes room. */
  #taken = Promise.withResolvers<void>()

  constructor(compression: Exclude<Compression, 'none'>, { hasSmallGroups = false }: CompressorOptions = {}) {
    const { codec, level } = COMPRESSION_LEVELS[compression]
    this.#native = new engine.Compressor(codec, level, hasSmallGroups)
  }

  /**
   * Copies all bytes; waits for next() to make room for them. One call at a time. Rejects with an
   * AbortError once closed.
   */
  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; ; ) {
      if (this.#isClosed) throw closed()
      at += this.#native.write(bytes.subarray(at))
      if (at === bytes.byteLength) return
      await this.#taken.promise
    }
  }

  /** No more bytes follow: next() returns the rest, then undefined. */
  end(): void {
    if (!this.#isClosed) this.#native.end()
  }

  /**
   * Returns the next part, or undefined at the end. The part stays valid until the second next() after it, even after
   * close(). Only one call at a time. Rejects with store-unavailable if memory is short, or with an AbortError once
   * closed.
   */
  async next(): Promise<Buffer | undefined> {
    if (this.#isClosed) throw closed()
    const flush = () => {
      // After close() the engine's part no longer exists, even before its answer has arrived.
      if (!this.#isClosed) this.#native.flush()
    }
    const flushing = setInterval(flush, PATIENCE_MS)
    try {
      const part = await this.#native.next()
      return part?.slab.subarray(0, part.length)
    } finally {
      clearInterval(flushing)
      this.#wakeWriter()
    }
  }

  /** Stops at once. May be called again. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#native.close()
    this.#wakeWriter()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #wakeWriter(): void {
    this.#taken.resolve()
    this.#taken = Promise.withResolvers()
  }
}

function closed(): DOMException {
  return new DOMException('the compressor was closed', 'AbortError')
}
