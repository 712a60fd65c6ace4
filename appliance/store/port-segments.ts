import {
  LOG_ENTRY_BYTES,
  type LogEntry,
  readLogEntry,
  SegmentFlag,
  writeLogEntry,
} from '../../native/segment-entry.ts'

const FIRST_CAPACITY = 8
/** Unused space at the front that is larger than this, and larger than what is held, is reclaimed. */
const HOLE_MAX = 64

/** The segments of one port in recording order, which is that of their numbers. */
export class PortSegments {
  readonly port: number
  #entries = Buffer.alloc(0)
  /** The range [#first, #end) of #entries is in use. */
  #first = 0
  #end = 0
  #lastNumber = 0
  #packets = 0n
  #bytes = 0n
  #sideBytes = 0n
  #damagedSegments = 0
  /** Whether neither the smallest nor the largest times decrease from one segment to the next. */
  #isAscending = true
  /** Smallest and largest time of all segments, if they do decrease. */
  #bounds: { readonly minNs: bigint; readonly maxNs: bigint } | undefined

  constructor(port: number) {
    this.port = port
  }

  /** Number of held segments. */
  get length(): number {
    return this.#end - this.#first
  }

  get packets(): bigint {
    return this.#packets
  }

  get bytes(): bigint {
    return this.#bytes
  }

  get sideBytes(): bigint {
    return this.#sideBytes
  }

  get damagedSegments(): number {
    return this.#damagedSegments
  }

  /** The highest number of any segment so far, held or removed; 0 = there was none. */
  get lastNumber(): number {
    return this.#lastNumber
  }

  /** The held segment with this index. REQUIRES: 0 <= index < length. */
  at(index: number): LogEntry {
    return readLogEntry(this.#entries, (this.#first + index) * LOG_ENTRY_BYTES)
  }

  /** The held segment that was recorded first. */
  get oldest(): LogEntry | undefined {
    return this.length === 0 ? undefined : this.at(0)
  }

  get newest(): LogEntry | undefined {
    return this.length === 0 ? undefined : this.at(this.length - 1)
  }

  /** The first one with a higher number. */
  after(number: number): LogEntry | undefined {
    const index = this.#indexOf(number + 1)
    return index < this.#end ? this.at(index - this.#first) : undefined
  }

  /** The last one with a lower number. */
  before(number: number): LogEntry | undefined {
    const index = this.#indexOf(number) - 1
    return index >= this.#first ? this.at(index - this.#first) : undefined
  }

  find(number: number): LogEntry | undefined {
    const index = this.#indexOf(number)
    return index < this.#end && this.#numberAt(index) === number ? this.at(index - this.#first) : undefined
  }

  /** The smallest timestamp that is held. */
  get minNs(): bigint | undefined {
    if (this.length === 0) return undefined
    return this.#isAscending ? this.#minNsAt(this.#first) : this.#boundsNow().minNs
  }

  /** The largest timestamp that is held. */
  get maxNs(): bigint | undefined {
    if (this.length === 0) return undefined
    return this.#isAscending ? this.#maxNsAt(this.#end - 1) : this.#boundsNow().maxNs
  }

  /** The entries of the segments that overlap [fromNs, toNs), in the engine's form: a copy. */
  select(fromNs: bigint, toNs: bigint): Buffer {
    if (this.length === 0) return Buffer.alloc(0)
    if (this.#isAscending) {
      // Most requests need all entries, or none.
      if (this.#maxNsAt(this.#first) >= fromNs && this.#minNsAt(this.#end - 1) < toNs)
        return this.#copy(this.#first, this.#end)
      const first = this.#firstFrom((index) => this.#maxNsAt(index) >= fromNs)
      const end = Math.max(
        first,
        this.#firstFrom((index) => this.#minNsAt(index) >= toNs),
      )
      return this.#copy(first, end)
    }
    const found: Buffer[] = []
    for (let index = this.#first; index < this.#end; index++) {
      if (this.#maxNsAt(index) < fromNs || this.#minNsAt(index) >= toNs) continue
      const at = index * LOG_ENTRY_BYTES
      found.push(this.#entries.subarray(at, at + LOG_ENTRY_BYTES))
    }
    return Buffer.concat(found)
  }

  #copy(first: number, end: number): Buffer {
    return Buffer.from(this.#entries.subarray(first * LOG_ENTRY_BYTES, end * LOG_ENTRY_BYTES))
  }

  /** Adds a segment, or replaces its entry. */
  put(entry: LogEntry): void {
    const index = this.#indexOf(entry.number)
    const isKnown = index < this.#end && this.#numberAt(index) === entry.number
    if (isKnown) this.#count(index, -1n)
    const place = isKnown ? index : this.#open(index)
    writeLogEntry(this.#entries, place * LOG_ENTRY_BYTES, entry)
    this.#count(place, 1n)
    this.noteNumber(entry.number)
    this.#bounds = undefined
    this.#isAscending &&= this.#isInOrder(place) && this.#isInOrder(place + 1)
  }

  /** Does nothing if the segment is not held. */
  remove(number: number): void {
    this.noteNumber(number)
    const index = this.#indexOf(number)
    if (index >= this.#end || this.#numberAt(index) !== number) return
    this.#count(index, -1n)
    this.#bounds = undefined
    if (index === this.#first) {
      this.#first += 1
      if (this.#first > HOLE_MAX && this.#first > this.length) this.#resize(this.length * 2)
      return
    }
    this.#entries.copyWithin(
      index * LOG_ENTRY_BYTES,
      (index + 1) * LOG_ENTRY_BYTES,
      this.#end * LOG_ENTRY_BYTES,
    )
    this.#end -= 1
  }

  /** There was once a segment with this number. */
  noteNumber(number: number): void {
    if (number > this.#lastNumber) this.#lastNumber = number
  }

  /**
   * Makes room for one entry at this index, and moves the entry there and those after it. Returns the index, which may
   * have changed.
   */
  #open(index: number): number {
    const offset = index - this.#first
    if ((this.#end + 1) * LOG_ENTRY_BYTES > this.#entries.length) {
      this.#resize(Math.max(FIRST_CAPACITY, this.length * 2))
    }
    const place = this.#first + offset
    const at = place * LOG_ENTRY_BYTES
    this.#entries.copyWithin(at + LOG_ENTRY_BYTES, at, this.#end * LOG_ENTRY_BYTES)
    this.#end += 1
    return place
  }

  #resize(capacity: number): void {
    const entries = Buffer.alloc(Math.max(capacity, FIRST_CAPACITY) * LOG_ENTRY_BYTES)
    this.#entries.copy(entries, 0, this.#first * LOG_ENTRY_BYTES, this.#end * LOG_ENTRY_BYTES)
    this.#end = this.length
    this.#first = 0
    this.#entries = entries
  }

  #count(index: number, sign: bigint): void {
    const { packets, bytes, sideBytes, flags } = readLogEntry(this.#entries, index * LOG_ENTRY_BYTES)
    if ((flags & SegmentFlag.damaged) !== 0) this.#damagedSegments += Number(sign)
    this.#packets += sign * packets
    this.#bytes += sign * bytes
    this.#sideBytes += sign * BigInt(sideBytes)
  }

  #isInOrder(index: number): boolean {
    if (index <= this.#first || index >= this.#end) return true
    return (
      this.#minNsAt(index - 1) <= this.#minNsAt(index) && this.#maxNsAt(index - 1) <= this.#maxNsAt(index)
    )
  }

  #boundsNow(): { readonly minNs: bigint; readonly maxNs: bigint } {
    if (this.#bounds !== undefined) return this.#bounds
    let [minNs, maxNs] = [this.#minNsAt(this.#first), this.#maxNsAt(this.#first)]
    for (let index = this.#first + 1; index < this.#end; index++) {
      if (this.#minNsAt(index) < minNs) minNs = this.#minNsAt(index)
      if (this.#maxNsAt(index) > maxNs) maxNs = this.#maxNsAt(index)
    }
    this.#bounds = { minNs, maxNs }
    return this.#bounds
  }

  /** Index of the first segment whose number is not lower. */
  #indexOf(number: number): number {
    return this.#firstFrom((index) => this.#numberAt(index) >= number)
  }

  /** The first index for which this holds; it must hold for all later ones, too. */
  #firstFrom(holds: (index: number) => boolean): number {
    let [low, high] = [this.#first, this.#end]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (holds(middle)) high = middle
      else low = middle + 1
    }
    return low
  }

  #numberAt(index: number): number {
    return this.#entries.readUInt32LE(index * LOG_ENTRY_BYTES + 4)
  }

  #minNsAt(index: number): bigint {
    return this.#entries.readBigInt64LE(index * LOG_ENTRY_BYTES + 8)
  }

  #maxNsAt(index: number): bigint {
    return this.#entries.readBigInt64LE(index * LOG_ENTRY_BYTES + 16)
  }
}
