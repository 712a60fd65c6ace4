import { MAX_CAPTURED_LENGTH, RECORD_HEADER_BYTES } from './pcap-sizes.ts'

const FRACTION_OFFSET = 4
const CAPTURED_LENGTH_OFFSET = 8
const ORIGINAL_LENGTH_OFFSET = 12

export interface RecordsForm {
  readonly isBigEndian?: boolean
  /** Whether fractions of a second are nanoseconds; default: microseconds. */
  readonly nanoseconds?: boolean
}

/** Reads the record header that stands at `at` of PCAP bytes. Set `at` to `end` to come to the next record. */
export class RecordCursor {
  at = 0
  readonly #view: DataView
  readonly #isLittle: boolean
  readonly #nsPerFraction: bigint

  constructor(bytes: Uint8Array, { isBigEndian = false, nanoseconds = false }: RecordsForm = {}) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#isLittle = !isBigEndian
    this.#nsPerFraction = nanoseconds ? 1n : 1_000n
  }

  /** Whether the bytes have the whole record header; all that follows needs it. */
  get hasHeader(): boolean {
    return this.at + RECORD_HEADER_BYTES <= this.#view.byteLength
  }

  get seconds(): number {
    return this.#number(0)
  }

  /** The fraction of the second, in the units of the file. */
  get fraction(): number {
    return this.#number(FRACTION_OFFSET)
  }

  get ns(): bigint {
    return BigInt(this.seconds) * 1_000_000_000n + BigInt(this.fraction) * this.#nsPerFraction
  }

  /** Length of the packet on the wire. */
  get originalLength(): number {
    return this.#number(ORIGINAL_LENGTH_OFFSET)
  }

  /** Where the next record begins, which may be after the bytes. Throws when the record claims more bytes than any may have. */
  get end(): number {
    const capturedLength = this.#number(CAPTURED_LENGTH_OFFSET)
    if (capturedLength > MAX_CAPTURED_LENGTH) throw new Error(`a record of ${capturedLength} bytes`)
    return this.at + RECORD_HEADER_BYTES + capturedLength
  }

  #number(offset: number): number {
    return this.#view.getUint32(this.at + offset, this.#isLittle)
  }
}
