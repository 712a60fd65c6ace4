import { crc32 } from 'node:zlib'

const TAIL_BYTES = 16_384
const NO_BYTES = Buffer.alloc(0)

/** Remembers the last 16 KiB of a body: far cheaper than a checksum of all of it. */
export class BodyTail {
  /** Many downloads end before their first byte. */
  #ring = NO_BYTES
  #end = 0
  #length = 0

  add(chunk: Uint8Array): void {
    if (this.#ring.length === 0) this.#ring = Buffer.allocUnsafe(TAIL_BYTES)
    const kept = chunk.length > TAIL_BYTES ? chunk.subarray(chunk.length - TAIL_BYTES) : chunk
    const untilEdge = Math.min(kept.length, TAIL_BYTES - this.#end)
    this.#ring.set(kept.subarray(0, untilEdge), this.#end)
    this.#ring.set(kept.subarray(untilEdge), 0)
    this.#end = (this.#end + kept.length) % TAIL_BYTES
    this.#length = Math.min(TAIL_BYTES, this.#length + kept.length)
  }

  get length(): number {
    return this.#length
  }

  /** CRC-32 of the last `length` bytes. */
  crc32(length = this.#length): number {
    const begin = (this.#end - length + TAIL_BYTES) % TAIL_BYTES
    if (length === 0) return 0
    if (begin < this.#end) return crc32(this.#ring.subarray(begin, this.#end))
    return crc32(this.#ring.subarray(0, this.#end), crc32(this.#ring.subarray(begin)))
  }
}
