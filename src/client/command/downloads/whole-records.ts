import { formatPcapHeader, type StreamHeader } from '../../../shared/pcap/pcap-header.ts'
import { PCAP_HEADER_BYTES } from '../../../shared/pcap/pcap-sizes.ts'
import { RecordBoundary } from '../../../shared/pcap/record-boundary.ts'

/**
 * Lets the bytes of a PCAP through by whole records, and holds back one that has not come to its end: what is kept
 * of a download that breaks off is a whole file, without the bytes that mark a cut.
 */
export class WholeRecords {
  readonly #boundary = new RecordBoundary('the gateway')
  #held: Uint8Array[] = []
  #heldBytes = 0
  /** Bytes that were let through, or were there before. */
  #given: number

  /** `begun`: the first byte is that of a record, behind a header of that byte order that is there already. */
  constructor(begun?: Pick<StreamHeader, 'isBigEndian'>) {
    this.#given = begun === undefined ? 0 : PCAP_HEADER_BYTES
    // Of the header only its length and its byte order count.
    const header = { linkType: 0, snaplen: 0, nanoseconds: true, ...begun }
    if (begun !== undefined) this.#boundary.feed([formatPcapHeader(header)])
  }

  /** Byte order of the PCAP; that of an empty one is little-endian. */
  get isBigEndian(): boolean {
    return this.#boundary.isBigEndian
  }

  /** Whether nothing is held back. */
  get isWhole(): boolean {
    return this.#boundary.atBoundary
  }

  /** Fails with device-protocol for what is no PCAP. */
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
