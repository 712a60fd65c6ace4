import { CapfleetError } from '../base/error.ts'
import { MAX_CAPTURED_LENGTH, PCAP_HEADER_BYTES, RECORD_HEADER_BYTES } from './pcap-header.ts'

const CAPTURED_LENGTH_OFFSET = 8
const ZEROS = Buffer.alloc(65_536)

/**
 * Follows the bytes of one little-endian PCAP and knows whether the last one fed ends a record, so
 * that a relay can tell a whole stream from a cut one. It looks at captured lengths only and keeps
 * at most one record header. Feed every byte once, in order, from the file header on, and nothing more
 * after a throw.
 */
export class RecordBoundary {
  readonly #name: string
  readonly #padding: 'end' | 'fault' | undefined
  #isPadding = false
  /** Bytes of the current element (file header or packet) that are still to come. */
  #missingBytes = PCAP_HEADER_BYTES
  /** A record header that is split over chunks, and how much of it is here. */
  readonly #split = new DataView(new ArrayBuffer(RECORD_HEADER_BYTES))
  #splitBytes = 0
  #fedBytes = 0
  /** Where the last element begins that is not whole yet. */
  #unfinishedFrom = 0
  #wholeBytes = 0
  #atBoundary = false

  /**
   * `name` is what errors call the stream, such as a device. `padding`: what a record of zeros alone is. Default: an empty
   * packet that somebody captured in 1970. "end": the beginning of what fills the file up, which ends there; "fault":
   * the same, where it cannot be left out.
   */
  constructor(name: string, { padding }: { readonly padding?: 'end' | 'fault' | undefined } = {}) {
    this.#name = name
    this.#padding = padding
  }

  /**
   * True when the bytes so far are a whole file: the header, and nothing or whole records after it.
   * Pieces that feed() refused do not count: they are not passed on.
   */
  get atBoundary(): boolean {
    return this.#atBoundary
  }

  /** Whether zeros have begun that fill the file up; it ends before them, at `wholeBytes`. */
  get isPadding(): boolean {
    return this.#isPadding
  }

  /** Bytes up to the end of the last whole record, or of the header, of the pieces that feed() took; 0 before. */
  get wholeBytes(): number {
    return this.#wholeBytes
  }

  /** Bytes of all pieces until padding began. */
  get fedBytes(): number {
    return this.#fedBytes
  }

  /** How many bytes on from here the next record begins; undefined while the header of one is split. */
  get bytesToNextRecord(): number | undefined {
    return this.#splitBytes === 0 ? this.#missingBytes : undefined
  }

  /** Throws device-protocol when a record claims more than 262,144 captured bytes, or padding is not all zeros. */
  feed(pieces: readonly Uint8Array[]): void {
    const [wasAtBoundary, wholeBytes] = [this.#atBoundary, this.#wholeBytes]
    try {
      for (const piece of pieces) {
        if (this.#isPadding) this.#expectZeros(piece)
        else this.#feedPiece(piece)
      }
    } catch (error) {
      // Padding may have begun in a piece that is refused with the others.
      this.#atBoundary = wasAtBoundary
      this.#wholeBytes = wholeBytes
      throw error
    }
    if (this.#isPadding) return
    this.#atBoundary = this.#missingBytes === 0 && this.#splitBytes === 0
    this.#wholeBytes = this.#atBoundary ? this.#fedBytes : this.#unfinishedFrom
  }

  #feedPiece(chunk: Uint8Array): void {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const end = chunk.byteLength
    let position = 0
    while (position < end) {
      if (this.#missingBytes > 0) {
        const taken = Math.min(this.#missingBytes, end - position)
        this.#missingBytes -= taken
        position += taken
      } else if (this.#splitBytes === 0 && end - position >= RECORD_HEADER_BYTES) {
        position = this.#skipRecords(view, position)
      } else {
        position += this.#feedSplitHeader(chunk.subarray(position), this.#fedBytes + position)
      }
    }
    this.#fedBytes += end
  }

  /** From record to record while their headers are whole; returns where it came to, at most the end. */
  #skipRecords(view: DataView, start: number): number {
    const end = view.byteLength
    let position = start
    let last = start
    while (position + RECORD_HEADER_BYTES <= end) {
      last = position
      if (
        this.#padding !== undefined &&
        view.getUint32(position + CAPTURED_LENGTH_OFFSET) === 0 &&
        isZero(view, position)
      )
        return this.#beginPadding(view, position)
      position += RECORD_HEADER_BYTES + this.#capturedLength(view, position, this.#fedBytes + position)
    }
    this.#unfinishedFrom = this.#fedBytes + last
    this.#missingBytes = Math.max(0, position - end)
    return Math.min(position, end)
  }

  /** Takes bytes of a record header that no single chunk holds; returns how many. */
  #feedSplitHeader(bytes: Uint8Array, offset: number): number {
    if (this.#splitBytes === 0) this.#unfinishedFrom = offset
    const taken = Math.min(RECORD_HEADER_BYTES - this.#splitBytes, bytes.byteLength)
    new Uint8Array(this.#split.buffer).set(bytes.subarray(0, taken), this.#splitBytes)
    this.#splitBytes += taken
    if (this.#splitBytes === RECORD_HEADER_BYTES) {
      const from = offset + taken - RECORD_HEADER_BYTES
      // The first of them were taken for a record's, and may be with the client.
      if (this.#padding !== undefined && isZero(this.#split, 0)) throw this.#zerosAt(from)
      this.#missingBytes = this.#capturedLength(this.#split, 0, from)
      this.#splitBytes = 0
    }
    return taken
  }

  /** Returns the end of the view: nothing of it from here on is a record. */
  #beginPadding(view: DataView, position: number): number {
    if (this.#padding === 'fault') throw this.#zerosAt(this.#fedBytes + position)
    this.#isPadding = true
    this.#atBoundary = true
    this.#wholeBytes = this.#fedBytes + position
    this.#expectZeros(new Uint8Array(view.buffer, view.byteOffset + position, view.byteLength - position))
    return view.byteLength
  }

  #expectZeros(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += ZEROS.length) {
      const some = bytes.subarray(at, at + ZEROS.length)
      if (!ZEROS.subarray(0, some.length).equals(some)) throw this.#zerosAt(this.#wholeBytes)
    }
  }

  #zerosAt(offset: number): CapfleetError {
    return new CapfleetError(
      'device-protocol',
      `${this.#name} sent zeros instead of a record at offset ${offset}`,
    )
  }

  #capturedLength(view: DataView, position: number, offset: number): number {
    const capturedLength = view.getUint32(position + CAPTURED_LENGTH_OFFSET, true)
    if (capturedLength <= MAX_CAPTURED_LENGTH) return capturedLength
    throw new CapfleetError(
      'device-protocol',
      `${this.#name} sent a record that claims ${capturedLength} captured bytes at offset ${offset}, at most ${MAX_CAPTURED_LENGTH} are possible`,
    )
  }
}

/** The chunks of a PCAP up to where zeros fill it up. Throws device-protocol as RecordBoundary does; an end inside a record is the reader's to see. */
export async function* withoutPadding(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, undefined> {
  const boundary = new RecordBoundary(name, { padding: 'end' })
  for await (const chunk of chunks) {
    const before = boundary.fedBytes
    boundary.feed([chunk])
    const bytes = boundary.isPadding ? boundary.wholeBytes - before : chunk.byteLength
    if (bytes > 0) yield chunk.subarray(0, bytes)
  }
}

function isZero(view: DataView, position: number): boolean {
  return [0, 4, 8, 12].every((offset) => view.getUint32(position + offset) === 0)
}
