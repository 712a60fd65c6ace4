/**
 * Large memory that is taken for one use and given back. What the collector has to find, it finds late:
 * until then the next ones lie behind it, and the allocator hardly ever gives the holes back to the system.
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
    if (this.#keptBytes + bytes > this.#keptBytesMax) return
    this.#keptBytes += bytes
    const kept = this.#free.get(bytes)
    if (kept === undefined) this.#free.set(bytes, [buffer])
    else kept.push(buffer)
  }
}
