import { MAX_CAPTURED_LENGTH, RECORD_HEADER_BYTES } from './pcap-header.ts'

const NO_BYTES = Buffer.alloc(0)
/** A slot of 64 KiB holds about 90 records of 700 bytes; its index has room for small ones. */
const INDEXED_RECORDS = 512

/** Of one record in the index of a window: its timestamp as in the file, and where it ends. */
export const INDEX_SECONDS = 0
export const INDEX_FRACTION = 1
export const INDEX_END = 2
export const INDEX_WORDS = 3

/**
 * The bytes at hand of one PCAP stream, and where its next record stands in them. Plain fields: the
 * merge reads and moves `front` once per record.
 *
 * The headers are read once, all in one pass right after the bytes came, while a core has them in its
 * cache. Whoever looks later looks at the index: with many inputs the bytes are far by then.
 */
export class RecordWindow {
  bytes: Buffer = NO_BYTES
  view: DataView<ArrayBufferLike> = new DataView(NO_BYTES.buffer, 0, 0)
  /** The memory that the bytes lie in, and where. */
  memory: ArrayBufferLike = NO_BYTES.buffer
  offset = 0
  /** Where the next record begins; the bytes before it are taken. */
  front = 0
  /** Where that record ends; 0 while no whole record is at hand. */
  frontEnd = 0
  /** The whole records of `bytes`, INDEX_WORDS each. */
  readonly index = new Uint32Array(INDEXED_RECORDS * INDEX_WORDS)
  /** Positions in the index: of the record at the front, and behind the last one. */
  indexFront = 0
  indexEnd = 0
  /** Whether no record in the index is earlier than the one before, and no fraction makes a second. */
  isOrdered = true
  readonly #unitsPerSecond: number

  constructor(nanoseconds: boolean) {
    this.#unitsPerSecond = nanoseconds ? 1_000_000_000 : 1_000_000
  }

  /** Looks at `bytes`, from a record's first byte on; of very many records at the first ones only. */
  show(bytes: Buffer): void {
    this.#look(bytes)
    this.front = 0
    this.indexFront = 0
    this.indexEnd = this.#readIndex()
    this.frontEnd = this.indexEnd > 0 ? (this.index[INDEX_END] as number) : 0
    if (this.indexEnd === this.index.length) this.#look(bytes.subarray(0, this.index.at(-1)))
  }

  /** Moves on by one record. There must be one at hand. */
  takeRecord(): void {
    this.takeUpTo(this.indexFront + INDEX_WORDS)
  }

  /** Moves on to this position in the index. It must be behind the front. */
  takeUpTo(position: number): void {
    const { index } = this
    this.front = index[position - INDEX_WORDS + INDEX_END] as number
    this.frontEnd = position < this.indexEnd ? (index[position + INDEX_END] as number) : 0
    this.indexFront = position
  }

  #look(bytes: Buffer): void {
    this.bytes = bytes
    this.memory = bytes.buffer
    this.offset = bytes.byteOffset
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  #readIndex(): number {
    const { index, view } = this
    const unitsPerSecond = this.#unitsPerSecond
    const { byteLength } = view
    const lastHeader = byteLength - RECORD_HEADER_BYTES
    let [position, start, lastSeconds, lastFraction, isOrdered] = [0, 0, 0, 0, true]
    while (start <= lastHeader && position < index.length) {
      const capturedLength = view.getUint32(start + 8, true)
      const end = start + RECORD_HEADER_BYTES + capturedLength
      if (capturedLength > MAX_CAPTURED_LENGTH || end > byteLength) break
      const seconds = view.getUint32(start, true)
      const fraction = view.getUint32(start + 4, true)
      if (seconds < lastSeconds || (seconds === lastSeconds && fraction < lastFraction)) isOrdered = false
      if (fraction >= unitsPerSecond) isOrdered = false
      index[position + INDEX_SECONDS] = seconds
      index[position + INDEX_FRACTION] = fraction
      index[position + INDEX_END] = end
      position += INDEX_WORDS
      lastSeconds = seconds
      lastFraction = fraction
      start = end
    }
    this.isOrdered = isOrdered
    return position
  }
}

/** Where the record that begins at `start` ends; 0 when it is not whole, or claims too much. */
export function recordEnd(view: DataView, start: number): number {
  if (start + RECORD_HEADER_BYTES > view.byteLength) return 0
  const capturedLength = view.getUint32(start + 8, true)
  const end = start + RECORD_HEADER_BYTES + capturedLength
  return end > view.byteLength || capturedLength > MAX_CAPTURED_LENGTH ? 0 : end
}
