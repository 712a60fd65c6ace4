import { RecordHash } from './record-hash.ts'
import { INDEX_END, INDEX_FRACTION, INDEX_SECONDS, INDEX_WORDS, type RecordWindow } from './record-window.ts'

/** What has been taken from one input so far. */
export interface InputTotals {
  readonly name: string
  readonly packets: number
  /** Bytes of those packets as records: 16-byte headers and captured bytes. */
  readonly bytes: number
  /** Timestamp of the first packet, and the latest timestamp; undefined before the first packet. */
  readonly firstNs: bigint | undefined
  readonly lastNs: bigint | undefined
  /** Packets whose timestamp was before one already taken from this input. */
  readonly outOfOrder: number
}

/** Packets at the end of those delivered: how many, and the hash of all of them in order. */
export interface RecordMark {
  readonly packets: number
  readonly low: number
  readonly high: number
}

/** How many of the last packets make the tail, unless a window holds fewer. */
const TAIL_PACKETS = 64

/**
 * What was delivered of one input: figures, and marks by which the place is found again in a new
 * stream of the same packets. Works on taken windows, once per 64 KiB and not once per packet.
 */
export class DeliveredRecords {
  readonly #fractionsPerSecond: number
  readonly #marksTail: boolean
  readonly #ties = new RecordHash()
  readonly #tail = new RecordHash()
  #tiePackets = 0
  #tailPackets = 0
  #packets = 0
  #bytes = 0
  #outOfOrder = 0
  #firstNs: bigint | undefined
  /** Of the latest timestamp; before the first packet earlier than any. */
  #seconds = -1
  #fraction = 0

  /** `marksTail`: keep the tail's mark also while the packets are in order. */
  constructor(options: { readonly nanoseconds: boolean; readonly marksTail: boolean }) {
    this.#fractionsPerSecond = options.nanoseconds ? 1_000_000_000 : 1_000_000
    this.#marksTail = options.marksTail
  }

  get packets(): number {
    return this.#packets
  }

  get outOfOrder(): number {
    return this.#outOfOrder
  }

  get firstNs(): bigint | undefined {
    return this.#firstNs
  }

  /** The latest timestamp; undefined before the first packet. */
  get lastNs(): bigint | undefined {
    return this.#packets === 0 ? undefined : this.#toNs(this.#seconds, this.#fraction)
  }

  /** The packets of the latest timestamp: the last ones, when none was out of order. */
  get ties(): RecordMark {
    return markOf(this.#ties, this.#tiePackets)
  }

  /** The last packets; without any while the packets are in order, unless asked for. */
  get tail(): RecordMark {
    return markOf(this.#tail, this.#tailPackets)
  }

  totals(name: string): InputTotals {
    const { packets, firstNs, lastNs, outOfOrder } = this
    return { name, packets, bytes: this.#bytes, firstNs, lastNs, outOfOrder }
  }

  /** What `window` shows before its front has been taken; it was added before up to `from` in its index. */
  add(window: RecordWindow, from: number): void {
    const { front, indexFront } = window
    const tiesFrom = this.#isBehind(window, from)
      ? this.#addOrderedTimes(window, from)
      : this.#addTimes(window, from)
    if (tiesFrom !== undefined) this.#ties.reset()
    addRecords(this.#ties, window, tiesFrom ?? from)
    this.#bytes += front - startOf(window, from)
    const packets = (indexFront - from) / INDEX_WORDS
    this.#packets += packets
    if (!this.#marksTail && this.#outOfOrder === 0) return
    if (packets >= TAIL_PACKETS || this.#tailPackets >= TAIL_PACKETS) this.#forgetTail()
    const tailFrom = Math.max(from, indexFront - TAIL_PACKETS * INDEX_WORDS)
    addRecords(this.#tail, window, tailFrom)
    this.#tailPackets += (indexFront - tailFrom) / INDEX_WORDS
  }

  /** Whether the records from there on are in order, and behind all before. */
  #isBehind({ isOrdered, index }: RecordWindow, from: number): boolean {
    if (!isOrdered) return false
    const seconds = index[from + INDEX_SECONDS] as number
    if (seconds !== this.#seconds) return seconds > this.#seconds
    return (index[from + INDEX_FRACTION] as number) > this.#fraction
  }

  /** As #addTimes, where only the first and the last ones need a look. */
  #addOrderedTimes({ index, indexFront }: RecordWindow, from: number): number {
    const last = indexFront - INDEX_WORDS
    const seconds = index[last + INDEX_SECONDS] as number
    const fraction = index[last + INDEX_FRACTION] as number
    let tiesFrom = last
    while (tiesFrom > from && isAt(index, tiesFrom - INDEX_WORDS, seconds, fraction)) tiesFrom -= INDEX_WORDS
    this.#firstNs ??= this.#toNs(
      index[from + INDEX_SECONDS] as number,
      index[from + INDEX_FRACTION] as number,
    )
    this.#seconds = seconds
    this.#fraction = fraction
    this.#tiePackets = (indexFront - tiesFrom) / INDEX_WORDS
    return tiesFrom
  }

  /** Returns where the packets of the latest timestamp begin, if none was of that time before. */
  #addTimes({ index, indexFront }: RecordWindow, from: number): number | undefined {
    const perSecond = this.#fractionsPerSecond
    let [seconds, fraction, ties, late] = [this.#seconds, this.#fraction, this.#tiePackets, 0]
    let tiesFrom: number | undefined
    for (let at = from; at < indexFront; at += INDEX_WORDS) {
      let recordSeconds = index[at + INDEX_SECONDS] as number
      let recordFraction = index[at + INDEX_FRACTION] as number
      if (recordFraction >= perSecond) {
        // Seen in the wild; it counts as the later instant that it adds up to.
        recordSeconds += Math.floor(recordFraction / perSecond)
        recordFraction %= perSecond
      }
      if (recordSeconds > seconds || (recordSeconds === seconds && recordFraction > fraction)) {
        this.#firstNs ??= this.#toNs(recordSeconds, recordFraction)
        seconds = recordSeconds
        fraction = recordFraction
        ties = 1
        tiesFrom = at
      } else if (recordSeconds === seconds && recordFraction === fraction) ties++
      else late++
    }
    this.#outOfOrder += late
    this.#seconds = seconds
    this.#fraction = fraction
    this.#tiePackets = ties
    return tiesFrom
  }

  #forgetTail(): void {
    this.#tailPackets = 0
    this.#tail.reset()
  }

  #toNs(seconds: number, fraction: number): bigint {
    return (
      BigInt(seconds) * 1_000_000_000n + BigInt(fraction) * BigInt(1_000_000_000 / this.#fractionsPerSecond)
    )
  }
}

function isAt(index: Uint32Array, position: number, seconds: number, fraction: number): boolean {
  return index[position + INDEX_SECONDS] === seconds && index[position + INDEX_FRACTION] === fraction
}

/** Where the record at this position of the index begins. */
function startOf({ index }: RecordWindow, position: number): number {
  return position === 0 ? 0 : (index[position - INDEX_WORDS + INDEX_END] as number)
}

/** The taken ones from this position of the index on. */
function addRecords(hash: RecordHash, window: RecordWindow, from: number): void {
  const { index, indexFront, view } = window
  let start = startOf(window, from)
  for (let position = from; position < indexFront; position += INDEX_WORDS) {
    const end = index[position + INDEX_END] as number
    hash.addRecord(view, start, end)
    start = end
  }
}

function markOf({ low, high }: RecordHash, packets: number): RecordMark {
  return { packets, low, high }
}
