import { formatPcapHeader, isBigEndian, type StreamHeader } from '../../../shared/pcap/pcap-header.ts'
import { PcapngBoundary } from '../../../shared/pcap/pcapng-boundary.ts'
import { RecordBoundary } from '../../../shared/pcap/record-boundary.ts'

/** What must be known of a capture file to continue it after whole records: the byte order of a PCAP. */
export type FileForm = 'pcapng' | Pick<StreamHeader, 'isBigEndian'>

type Boundary = Pick<PcapngBoundary, 'feed' | 'atBoundary' | 'wholeBytes'>

const NAME = 'the gateway'
/** Only a section header of pcapng begins with it. */
const PCAPNG_FIRST_BYTE = 0x0a

/**
 * Passes the bytes of a PCAP or pcapng on in whole records or blocks, and holds back an incomplete one: what is stored
 * of a download that breaks off is a valid file, without the bytes that mark a cut.
 */
export class WholeRecords {
  /** Undefined until there is a byte. */
  #boundary: Boundary | undefined
  #held: Uint8Array[] = []
  #heldBytes = 0
  /** Bytes that were passed on, or were there before. */
  #given = 0
  #form: FileForm = { isBigEndian: false }

  /** `begun`: the first byte is the start of a record or block, because the file has begun before. */
  constructor(begun?: FileForm) {
    if (begun === undefined) return
    this.#form = begun
    this.#boundary = begun === 'pcapng' ? new PcapngBoundary(NAME, { isBegun: true }) : afterHeader(begun)
    this.#given = this.#boundary.wholeBytes
  }

  /** The form of the file; that of a little-endian PCAP if it is empty. */
  get form(): FileForm {
    return this.#form
  }

  /** Whether nothing is held back, and there is a file. */
  get isWhole(): boolean {
    return this.#boundary?.atBoundary === true
  }

  /** Fails with device-protocol for anything that is neither a PCAP nor pcapng. */
  take(chunk: Uint8Array): readonly Uint8Array[] {
    if (chunk.length === 0) return []
    this.#boundary ??= this.#begin(chunk)
    this.#boundary.feed([chunk])
    const bytes = this.#boundary.wholeBytes - this.#given
    if (bytes <= 0) {
      this.#held.push(chunk)
      this.#heldBytes += chunk.length
      return []
    }
    const last = bytes - this.#heldBytes
    const whole = [...this.#held, chunk.subarray(0, last)]
    const rest = chunk.subarray(last)
    this.#held = rest.length === 0 ? [] : [rest]
    this.#heldBytes = rest.length
    this.#given += bytes
    return whole
  }

  #begin(chunk: Uint8Array): Boundary {
    if (chunk[0] === PCAPNG_FIRST_BYTE) {
      this.#form = 'pcapng'
      return new PcapngBoundary(NAME)
    }
    this.#form = { isBigEndian: isBigEndian(chunk[0]) }
    return new RecordBoundary(NAME)
  }
}

/** The boundary after the header of such a PCAP, of which only the length and byte order matter. */
function afterHeader({ isBigEndian: isBig }: Pick<StreamHeader, 'isBigEndian'>): RecordBoundary {
  const boundary = new RecordBoundary(NAME)
  boundary.feed([formatPcapHeader({ linkType: 0, snaplen: 0, nanoseconds: true, isBigEndian: isBig })])
  return boundary
}
