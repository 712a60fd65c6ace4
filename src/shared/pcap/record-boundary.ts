import { CapfleetError } from '../base/error.ts'
import { isBigEndian } from './pcap-header.ts'
import { MAX_CAPTURED_LENGTH, PCAP_HEADER_BYTES, RECORD_HEADER_BYTES } from './pcap-sizes.ts'

const CAPTURED_LENGTH_OFFSET = 8
const ZEROS = Buffer.alloc(65_536)

/**
 * Follows the bytes of one PCAP of either byte order and knows whether the last one ends a record, so that a relay can
 * tell a complete stream from a truncated one. It only reads captured lengths and holds at most one record header.
 * Feed every byte once, in order, starting at the file header, and nothing more after it has thrown.
 */
export class RecordBoundary {
  readonly #name: string
  readonly #padding: 'end' | 'fault' | undefined
  #isPadding = false
  #isBigEndian = false
  /** Bytes of the current element (file header or packet) that are still missing. */
  #missingBytes = PCAP_HEADER_BYTES
  /** A record header that is split over chunks, as far as it has arrived. */
  readonly #split = new DataView(new ArrayBuffer(RECORD_HEADER_BYTES))
  #splitBytes = 0
  /** With padding "end": number of bytes of #split, while all of them are zeros. */
  #heldZeros = 0
  /** Bytes of all pieces until padding began. */
  #fedBytes = 0
  /** Where the last incomplete element begins. */
  #unfinishedFrom = 0
  #wholeBytes = 0
  #atBoundary = false

  /**
   * `name` is what errors call the stream, such as a device. `padding` says what a record that consists only of zeros
   * is. Default: an empty packet captured in 1970. "end": the beginning of padding, at which the file ends; "fault":
   * the same, where it cannot be removed. With "end", fewer zeros at the end are padding too.
   */
  constructor(name: string, { padding }: { readonly padding?: 'end' | 'fault' | undefined } = {}) {
    this.#name = name
    this.#padding = padding
  }

  /**
   * True if the bytes so far, without those held back, are a complete file: the header, followed by nothing or by
   * whole records. Pieces that feed() rejected do not count, because they are not passed on.
   */
  get atBoundary(): boolean {
    return this.#atBoundary
  }

  /** Whether padding has begun; the file ends before it, at `wholeBytes`. */
  get isPadding(): boolean {
    return this.#isPadding
  }

  /**
   * Bytes up to the end of the last complete record, or of the header, in the pieces that feed() accepted; 0 before
   * that.
   */
  get wholeBytes(): number {
    return this.#wholeBytes
  }

  /** Byte order of the PCAP, according to its first byte. */
  get isBigEndian(): boolean {
    return this.#isBigEndian
  }

  /**
   * Distance to the beginning of the next record, counted from the bytes held back; undefined while a record header is
   * split.
   */
  get bytesToNextRecord(): number | undefined {
    return this.#splitBytes === this.#heldZeros ? this.#missingBytes : undefined
  }

  /**
   * Feeds the pieces, and returns what may be passed on: without padding, and without zeros at the end while they may
   * be the beginning of a record or of padding; those are returned before the next pieces. Returns the pieces
   * themselves if nothing is removed. Throws like feed().
   */
  pass(pieces: readonly Buffer[]): readonly Buffer[] {
    const held = this.#heldZeros
    const from = this.#fedBytes - held
    this.feed(pieces)
    const to = this.#isPadding ? this.#wholeBytes : this.#fedBytes - this.#heldZeros
    if (held === 0 && to === this.#fedBytes) return pieces
    return firstBytes(held === 0 ? pieces : [ZEROS.subarray(0, held), ...pieces], Math.max(0, to - from))
  }

  /** Throws device-protocol if a record claims more than 262,144 captured bytes, or padding is not all zeros. */
  feed(pieces: readonly Uint8Array[]): void {
    const [wasAtBoundary, wholeBytes] = [this.#atBoundary, this.#wholeBytes]
    try {
      for (const piece of pieces) {
        if (this.#isPadding) this.#expectZeros(piece)
        else this.#feedPiece(piece)
      }
    } catch (error) {
      // Padding may have begun in a piece that is rejected together with the others.
      this.#atBoundary = wasAtBoundary
      this.#wholeBytes = wholeBytes
      throw error
    }
    if (this.#isPadding) return
    const isHeld = this.#padding === 'end' && isZero(this.#split, 0)
    this.#heldZeros = isHeld ? this.#splitBytes : 0
    this.#atBoundary = this.#missingBytes === 0 && this.#splitBytes === this.#heldZeros
    this.#wholeBytes = this.#atBoundary ? this.#fedBytes - this.#heldZeros : this.#unfinishedFrom
  }

  #feedPiece(chunk: Uint8Array): void {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const end = chunk.byteLength
    if (this.#fedBytes === 0) this.#isBigEndian = isBigEndian(chunk[0])
    let position = 0
    while (position < end) {
      if (this.#isPadding) {
        this.#expectZeros(chunk.subarray(position))
        break
      }
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

  /** Skips records while their headers are complete; returns the position reached, at most the end. */
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
      ) {
        this.#beginPadding(this.#fedBytes + position)
        return position
      }
      position += RECORD_HEADER_BYTES + this.#capturedLength(view, position, this.#fedBytes + position)
    }
    this.#unfinishedFrom = this.#fedBytes + last
    this.#missingBytes = Math.max(0, position - end)
    return Math.min(position, end)
  }

  /** Consumes bytes of a record header that no single chunk contains; returns how many. */
  #feedSplitHeader(bytes: Uint8Array, offset: number): number {
    if (this.#splitBytes === 0) this.#unfinishedFrom = offset
    const taken = Math.min(RECORD_HEADER_BYTES - this.#splitBytes, bytes.byteLength)
    const split = new Uint8Array(this.#split.buffer)
    split.set(bytes.subarray(0, taken), this.#splitBytes)
    this.#splitBytes += taken
    if (this.#splitBytes < RECORD_HEADER_BYTES) return taken
    const from = offset + taken - RECORD_HEADER_BYTES
    if (this.#padding !== undefined && isZero(this.#split, 0)) this.#beginPadding(from)
    else this.#missingBytes = this.#capturedLength(this.#split, 0, from)
    this.#splitBytes = 0
    split.fill(0)
    return taken
  }

  /** Nothing from that offset on is a record. */
  #beginPadding(offset: number): void {
    if (this.#padding === 'fault') throw this.#zerosAt(offset)
    this.#isPadding = true
    this.#heldZeros = 0
    this.#atBoundary = true
    this.#wholeBytes = offset
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
    const capturedLength = view.getUint32(position + CAPTURED_LENGTH_OFFSET, !this.#isBigEndian)
    if (capturedLength <= MAX_CAPTURED_LENGTH) return capturedLength
    throw new CapfleetError(
      'device-protocol',
      `${this.#name} sent a record that claims ${capturedLength} captured bytes at offset ${offset}, but at most ${MAX_CAPTURED_LENGTH} are allowed`,
    )
  }
}

/**
 * The chunks of a PCAP up to its padding with zeros. Throws device-protocol like RecordBoundary; the reader must
 * detect an end inside a record.
 */
export async function* withoutPadding(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, undefined> {
  const boundary = new RecordBoundary(name, { padding: 'end' })
  for await (const { buffer, byteOffset, byteLength } of chunks)
    yield* boundary.pass([Buffer.from(buffer, byteOffset, byteLength)])
}

function firstBytes(pieces: readonly Buffer[], bytes: number): readonly Buffer[] {
  const kept: Buffer[] = []
  let left = bytes
  for (const piece of pieces) {
    if (left > 0) kept.push(piece.subarray(0, left))
    left -= piece.length
  }
  return kept
}

function isZero(view: DataView, position: number): boolean {
  return [0, 4, 8, 12].every((offset) => view.getUint32(position + offset) === 0)
}
