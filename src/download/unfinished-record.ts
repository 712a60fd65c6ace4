import { PCAP_HEADER_BYTES, RECORD_HEADER_BYTES } from '../pcap/pcap-header.ts'

const CAPTURED_LENGTH_OFFSET = 8

/** Follows a little-endian PCAP and keeps its header and the record that is not whole yet. */
export class UnfinishedRecord {
  #header: Buffer = Buffer.alloc(0)
  #bytes: Buffer = Buffer.alloc(0)

  get header(): Buffer {
    return this.#header
  }

  get bytes(): Buffer {
    return this.#bytes
  }

  feed(piece: Uint8Array): void {
    const missing = PCAP_HEADER_BYTES - this.#header.length
    this.#header = Buffer.concat([this.#header, piece.subarray(0, missing)])
    const all = Buffer.concat([this.#bytes, piece.subarray(missing)])
    let end = 0
    for (let next = end; next <= all.length; next = recordEnd(all, end)) end = next
    this.#bytes = Buffer.from(all.subarray(end))
  }
}

/** Beyond the end of `all` when the record is not whole. */
function recordEnd(all: Buffer, at: number): number {
  if (at + RECORD_HEADER_BYTES > all.length) return Infinity
  return at + RECORD_HEADER_BYTES + all.readUInt32LE(at + CAPTURED_LENGTH_OFFSET)
}
