import { RECORD_HEADER_BYTES } from './pcap-header.ts'

export interface RecordLimits {
  readonly maxPackets: bigint | undefined
  /** Of the records with their headers, without the file header. */
  readonly maxBytes: bigint | undefined
  /** The unit of the records' fractions. */
  readonly nanoseconds: boolean
}

/**
 * Ends a stream of whole PCAP records before the first one that goes over a limit. The figures are
 * of what has passed so far.
 */
export class RecordLimiter {
  readonly #limits: RecordLimits
  #packets = 0n
  #bytes = 0n
  #nextNs: bigint | undefined

  constructor(limits: RecordLimits) {
    this.#limits = limits
  }

  get packets(): bigint {
    return this.#packets
  }

  /** Timestamp of the first record that was left out; undefined while none was. */
  get nextNs(): bigint | undefined {
    return this.#nextNs
  }

  /** Each chunk must be whole records. Ends `chunks` too when a limit is reached. */
  async *pass(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      const end = this.#take(chunk)
      if (end > 0) yield chunk.subarray(0, end)
      if (end < chunk.length) return
    }
  }

  /** Counts the records that may pass; where they end in the chunk. */
  #take(chunk: Buffer): number {
    const { maxPackets, maxBytes } = this.#limits
    let offset = 0
    while (offset < chunk.length) {
      const recordBytes = RECORD_HEADER_BYTES + chunk.readUInt32LE(offset + 8)
      const bytes = this.#bytes + BigInt(recordBytes)
      const isOver =
        (maxBytes !== undefined && bytes > maxBytes) ||
        (maxPackets !== undefined && this.#packets >= maxPackets)
      if (isOver) {
        this.#nextNs = this.#timestampAt(chunk, offset)
        break
      }
      this.#packets += 1n
      this.#bytes = bytes
      offset += recordBytes
    }
    return offset
  }

  #timestampAt(chunk: Buffer, offset: number): bigint {
    const fraction = BigInt(chunk.readUInt32LE(offset + 4))
    const fractionNs = this.#limits.nanoseconds ? fraction : fraction * 1_000n
    return BigInt(chunk.readUInt32LE(offset)) * 1_000_000_000n + fractionNs
  }
}
