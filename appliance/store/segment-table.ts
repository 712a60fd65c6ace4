/**
 * The finished segments of one capture, in memory, as in its log. 64 bytes each and no objects, so that a capture of
 * 100,000 segments takes 6.4 MB and each further one costs the same as the first.
 */
import {
  LOG_ENTRY_BYTES,
  type LogEntry,
  LogEntryKind,
  readLogEntry,
  SegmentFlag,
  writeLogEntry,
} from '../../native/segment-entry.ts'

/** Total of what retention has removed from a capture. */
export interface RemovedSegments {
  readonly packets: bigint
  /** Bytes of the segment files. */
  readonly bytes: bigint
  /** [startNs, endNs) contained their packets. */
  readonly startNs: bigint
  readonly endNs: bigint
}

/** Packets that a recording could not keep, by cause. */
export interface Drops {
  readonly ring: bigint
  readonly disk: bigint
}

export class SegmentTable {
  readonly #ports = new Map<number, PortSegments>()
  #removed: RemovedSegments | undefined
  #drops: Drops | undefined
  #mayLackDrops = false
  #isClosed = false

  /** Ports that hold segments or once held some, ascending. */
  get ports(): readonly PortSegments[] {
    return [...this.#ports.values()].sort((a, b) => a.port - b.port)
  }

  portOf(port: number): PortSegments | undefined {
    return this.#ports.get(port)
  }

  get removed(): RemovedSegments | undefined {
    return this.#removed
  }

  get drops(): Drops | undefined {
    return this.#drops
  }

  /** Whether a lost entry of the log may have recorded further drops. */
  get mayLackDrops(): boolean {
    return this.#mayLackDrops
  }

  /** Whether the log says that the capture has ended. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  get packets(): bigint {
    return this.#sum((port) => port.packets)
  }

  /** Bytes of the segment files. */
  get bytes(): bigint {
    return this.#sum((port) => port.bytes)
  }

  /** Disk space of the segments, including index, tallies and sieves. */
  get storedBytes(): bigint {
    return this.#sum((port) => port.bytes + port.sideBytes)
  }

  /** Number of held segments of which some packets are known to be lost. */
  get damagedSegments(): number {
    let count = 0
    for (const port of this.#ports.values()) count += port.damagedSegments
    return count
  }

  get segments(): number {
    let count = 0
    for (const port of this.#ports.values()) count += port.length
    return count
  }

  /** Applies one entry of the log. */
  apply(entry: LogEntry): void {
    switch (entry.kind) {
      case LogEntryKind.finished:
        this.#port(entry.port).put(entry)
        return
      case LogEntryKind.removed:
        this.#port(entry.port).remove(entry.number)
        this.#addRemoved(entry)
        return
      case LogEntryKind.removedBefore:
        this.#port(entry.port).noteNumber(entry.number)
        this.#addRemoved(entry)
        return
      case LogEntryKind.closed:
        this.#isClosed = true
        return
      case LogEntryKind.drops:
        this.#drops = { ring: entry.packets, disk: entry.bytes }
        this.#mayLackDrops = (entry.flags & SegmentFlag.damaged) !== 0
        return
    }
  }

  /** An entry was lost that may have recorded drops. */
  noteLostDrops(): void {
    this.#mayLackDrops = true
  }

  /** Removes a segment whose files are gone although no entry says so. */
  forget(port: number, number: number): void {
    this.#ports.get(port)?.remove(number)
  }

  #port(number: number): PortSegments {
    const known = this.#ports.get(number)
    if (known !== undefined) return known
    const port = new PortSegments(number)
    this.#ports.set(number, port)
    return port
  }

  #addRemoved({ packets, bytes, minNs, maxNs }: LogEntry): void {
    const before = this.#removed
    this.#removed = {
      packets: (before?.packets ?? 0n) + packets,
      bytes: (before?.bytes ?? 0n) + bytes,
      startNs: before !== undefined && before.startNs < minNs ? before.startNs : minNs,
      endNs: before !== undefined && before.endNs > maxNs ? before.endNs : maxNs + 1n,
    }
  }

  #sum(of: (port: PortSegments) => bigint): bigint {
    let sum = 0n
    for (const port of this.#ports.values()) sum += of(port)
    return sum
  }
}

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
