import { CapfleetError } from '../base/error.ts'
import { PcapngOption, readOptions, STATISTICS_FIELDS_BYTES } from './pcapng-blocks.ts'

/** The first comment of the block that ends a pcapng file begins so; no other comment of that block does. */
export const PCAPNG_END = 'capfleet end: '

const SECTION_HEADER = 0x0a0d0d0a
const INTERFACE_STATISTICS = 5
const BYTE_ORDER_MAGIC = 0x1a2b3c4d
/** Type and length. */
const HEAD_BYTES = 8
/** The length again. */
const TRAILER_BYTES = 4
const SMALLEST_BLOCK_BYTES = HEAD_BYTES + TRAILER_BYTES
/** Larger than any block that capfleet writes: its packets have at most 256 KiB. */
const BLOCK_BYTES_MAX = 16 * 2 ** 20

type Part = 'head' | 'body' | 'trailer'

/**
 * Follows the blocks of a pcapng file as capfleet writes it, of one little-endian section, and knows whether it is
 * whole: its last block is one of interface statistics, whose first comment begins with PCAPNG_END. Neither a query in
 * another comment nor the bytes of a packet can look like that. Holds nothing but the last block of statistics. Feed
 * every byte once, in order, and nothing more after it has thrown.
 */
export class PcapngEnd {
  readonly #name: string
  #part: Part = 'head'
  #missingBytes = HEAD_BYTES
  #held: Buffer[] = []
  #type: number | undefined
  #blockBytes = 0
  /** Where the block begins. */
  #from = 0
  #comments: readonly string[] = []

  /** `name` is what errors call the file. */
  constructor(name: string) {
    this.#name = name
  }

  /** Fails with device-protocol at anything that is not such a file. */
  feed(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      const piece = chunk.subarray(at, at + this.#missingBytes)
      at += piece.length
      this.#missingBytes -= piece.length
      if (this.#part !== 'body' || this.#holdsBody) this.#held.push(Buffer.from(piece))
      if (this.#missingBytes === 0) this.#endPart(Buffer.concat(this.#held.splice(0)))
    }
  }

  /** Whether the bytes so far end with a block. */
  get isAtBoundary(): boolean {
    return this.#part === 'head' && this.#missingBytes === HEAD_BYTES && this.#type !== undefined
  }

  /** The comments of the block that ends the file, the first without PCAPNG_END; undefined: the file is not whole. */
  get comments(): readonly string[] | undefined {
    const [first, ...others] = this.#comments
    if (!this.isAtBoundary || first === undefined || !first.startsWith(PCAPNG_END)) return undefined
    return [first.slice(PCAPNG_END.length), ...others]
  }

  get #holdsBody(): boolean {
    return this.#type === INTERFACE_STATISTICS || this.#type === SECTION_HEADER
  }

  #endPart(bytes: Buffer): void {
    if (this.#part === 'head') this.#begin(bytes)
    else if (this.#part === 'body') this.#takeBody(bytes)
    else this.#end(bytes)
  }

  #begin(head: Buffer): void {
    const type = head.readUInt32LE(0)
    const bytes = head.readUInt32LE(4)
    const isFirst = this.#type === undefined
    if (isFirst !== (type === SECTION_HEADER)) throw this.#fault('is not a pcapng file of one section')
    if (bytes <= SMALLEST_BLOCK_BYTES || bytes > BLOCK_BYTES_MAX || bytes % 4 !== 0)
      throw this.#fault(`has a block of ${bytes} bytes`)
    this.#type = type
    this.#blockBytes = bytes
    this.#comments = []
    this.#expect('body', bytes - SMALLEST_BLOCK_BYTES)
  }

  #takeBody(body: Buffer): void {
    if (this.#type === SECTION_HEADER && body.readUInt32LE(0) !== BYTE_ORDER_MAGIC)
      throw this.#fault('is not a little-endian pcapng file')
    if (this.#type === INTERFACE_STATISTICS) this.#comments = commentsOf(body)
    this.#expect('trailer', TRAILER_BYTES)
  }

  #end(trailer: Buffer): void {
    if (trailer.readUInt32LE(0) !== this.#blockBytes) throw this.#fault('has a block with two lengths')
    this.#from += this.#blockBytes
    this.#expect('head', HEAD_BYTES)
  }

  #expect(part: Part, bytes: number): void {
    this.#part = part
    this.#missingBytes = bytes
  }

  #fault(what: string): CapfleetError {
    return new CapfleetError('device-protocol', `${this.#name} ${what}, at byte ${this.#from}`)
  }
}

function commentsOf(statistics: Buffer): readonly string[] {
  const options = readOptions(statistics.subarray(STATISTICS_FIELDS_BYTES))
  return options.flatMap(({ code, value }) =>
    code === PcapngOption.comment ? [Buffer.from(value).toString()] : [],
  )
}

export interface EndOfFile {
  readonly packets: bigint
  /** Blocks of packets that are left out as damaged. */
  readonly corruptBlocks: bigint
  /** The time of the first packet that MaxPackets or MaxBytes cut off. */
  readonly nextNs: bigint | undefined
  /** What else is missing. */
  readonly lacks: readonly string[]
}

/** The first comment of the block that ends a file. */
export function endComment({ packets, corruptBlocks, nextNs, lacks }: EndOfFile): string {
  const missing = [...(corruptBlocks === 0n ? [] : [`${corruptBlocks} damaged blocks are missing`]), ...lacks]
  const extent = missing.length === 0 ? 'complete' : 'incomplete'
  const limited = `ended by MaxPackets or MaxBytes; the next packet is from ${nextNs} ns`
  return [`${PCAPNG_END}${packets} packets, ${nextNs === undefined ? extent : limited}`, ...missing].join(
    '; ',
  )
}
