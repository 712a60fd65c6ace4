/**
 * Memory for reading from sockets. A buffer is taken for one read and given back when the bytes are
 * no longer needed, so that a stream of gigabytes makes no garbage.
 */

/** Free buffers above this are left to the garbage collector. */
const KEPT_BYTES_MAX = 64 * 1024 * 1024

export class ReadBuffers {
  readonly #free = new Map<number, Buffer[]>()
  #keptBytes = 0
  #takenBytes = 0

  /** Bytes that are taken now. */
  get takenBytes(): number {
    return this.#takenBytes
  }

  /** The content is undefined. */
  take(bytes: number): Buffer {
    this.#takenBytes += bytes
    const kept = this.#free.get(bytes)?.pop()
    if (kept === undefined) return Buffer.allocUnsafeSlow(bytes)
    this.#keptBytes -= bytes
    return kept
  }

  /** REQUIRES: `buffer` came from take() as it is, and nobody reads or writes it any more. */
  give(buffer: Buffer): void {
    const bytes = buffer.byteLength
    this.#takenBytes -= bytes
    if (this.#keptBytes + bytes > KEPT_BYTES_MAX) return
    this.#keptBytes += bytes
    const kept = this.#free.get(bytes)
    if (kept === undefined) this.#free.set(bytes, [buffer])
    else kept.push(buffer)
  }
}

/** Shared by all device streams of the process. */
export const READ_BUFFERS = new ReadBuffers()
