import { formatPcapHeader, type StreamHeader } from '../../../shared/pcap/pcap-header.ts'
import { PCAP_HEADER_BYTES } from '../../../shared/pcap/pcap-sizes.ts'
import { RecordBoundary } from '../../../shared/pcap/record-boundary.ts'

/**
 * Passes the bytes of a PCAP on in whole records, and holds back an incomplete one: what is stored of a download that
 * breaks off is a valid file, without the bytes that mark a cut.
 */
export class WholeRecords {
  readonly #boundary = new RecordBoundary('the gateway')
  #held: Uint8Array[] = []
  #heldBytes = 0
  /** Bytes that were passed on, or were there before. */
  #given: number

  /** `begun`: the first byte is the start of a record, because a header of that byte order is already there. */
  constructor(begun?: Pick<StreamHeader, 'isBigEndian'>) {
    this.#given = begun === undefined ? 0 : PCAP_HEADER_BYTES
    // Only the length and byte order of the header matter.
    const header = { linkType: 0, snaplen: 0, nanoseconds: true, ...begun }
    if (begun !== undefined) this.#boundary.feed([formatPcapHeader(header)])
  }

  /** Byte order of the PCAP; little-endian if it is empty. */
  get isBigEndian(): boolean {
    return this.#boundary.isBigEndian
  }

  /** Whether nothing is held back. */
  get isWhole(): boolean {
    return this.#boundary.atBoundary
  }

  /** Fails with device-protocol for anything that is not a PCAP. */
  take(chunk: Uint8Array): readonly Uint8Array[] {
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
}
