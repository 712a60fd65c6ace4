const TIMESTAMP_BYTES = 8
const FIRST_LOW = 0x9e3779b9 | 0
const FIRST_HIGH = 0x85ebca6b | 0

/**
 * A 64-bit hash of a run of bytes, for finding equal packets among a few thousand: quick, and not
 * made to withstand somebody who looks for collisions. Reads four bytes at a time.
 */
export class RecordHash {
  low = FIRST_LOW
  high = FIRST_HIGH

  reset(): void {
    this.low = FIRST_LOW
    this.high = FIRST_HIGH
  }

  /** Goes on with a record save its timestamp, which may have been rewritten. */
  addRecord(view: DataView, start: number, end: number): void {
    this.add(view, start + TIMESTAMP_BYTES, end)
  }

  /** Goes on with the bytes from `start` to `end`. */
  add(view: DataView, start: number, end: number): void {
    let low = this.low ^ (end - start)
    let high = this.high
    let at = start
    for (; at + 4 <= end; at += 4) {
      const word = view.getInt32(at, true)
      low = Math.imul(low ^ word, 0xcc9e2d51)
      low ^= low >>> 15
      high = Math.imul(((high << 13) | (high >>> 19)) ^ word, 0x1b873593) + low
    }
    for (; at < end; at++) {
      const byte = view.getUint8(at)
      low = Math.imul(low ^ byte, 0xcc9e2d51)
      high = Math.imul(((high << 13) | (high >>> 19)) ^ byte, 0x1b873593) + low
    }
    this.low = finish(low)
    this.high = finish(high)
  }
}

function finish(word: number): number {
  let mixed = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}
