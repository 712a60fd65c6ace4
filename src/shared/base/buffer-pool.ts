/**
 * Large buffers that are taken for one use and returned. The garbage collector would find them late: until then new
 * ones are allocated after them, and the allocator hardly ever returns the holes to the system.
 */
export class BufferPool {
  readonly #keptBytesMax: number
  readonly #free = new Map<number, Buffer[]>()
  #keptBytes = 0
  #takenBytes = 0

  /** Free buffers above `keptBytesMax` are left to the garbage collector. */
  constructor(keptBytesMax: number) {
    this.#keptBytesMax = keptBytesMax
  }

  /** Bytes that are currently in use. */
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

  /** REQUIRES: `buffer` came from take() unmodified (not a slice), and is no longer read or written. */
  give(buffer: Buffer): void {
    const bytes = buffer.byteLength
    this.#takenBytes -= bytes
    if (this.#keptBytes + bytes > this.#keptBytesMax) return
    this.#keptBytes += bytes
    const kept = this.#free.get(bytes)
    if (kept === undefined) this.#free.set(bytes, [buffer])
    else kept.push(buffer)
  }
}
