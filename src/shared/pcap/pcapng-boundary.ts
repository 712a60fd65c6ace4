import { CapfleetError } from '../base/error.ts'
import { BYTE_ORDER_MAGIC, PcapngBlockType } from './pcapng-blocks.ts'

/** Type, length, and four bytes more, which the shortest block has too. */
const HEAD_BYTES = 12
/** The length again. */
const TRAILER_BYTES = 4
const SMALLEST_BLOCK_BYTES = 16
/** Larger than any block that capfleet writes: its packets have at most 256 KiB. */
const BLOCK_BYTES_MAX = 16 * 2 ** 20

export interface PcapngBoundaryOptions {
  /** Whether the first byte is that of a later block of a file. Default: the file begins there. */
  readonly isBegun?: boolean
  /** How much of the section header and the interface descriptions is kept. Default: nothing. */
  readonly headerBytesMax?: number
  /** Called with every block of interface statistics, when the last byte of it has been fed. */
  readonly onStatistics?: (block: Buffer) => void
}

/**
 * Follows the blocks of a pcapng file as capfleet writes it, of one little-endian section, and knows whether the last
 * byte ends a block. It reads only types and lengths, except for the blocks that it keeps. Feed every byte once, in
 * order, and nothing more after it has thrown.
 */
export class PcapngBoundary {
  readonly #name: string
  readonly #options: PcapngBoundaryOptions
  /** Bytes of all pieces. */
  #fedBytes = 0
  /** Where the current block begins, which is where the last complete one ends. */
  #from = 0
  /** The head of a block that is split over pieces, as far as it has arrived. */
  readonly #head = Buffer.alloc(HEAD_BYTES)
  #headBytes = 0
  /** The block whose head has arrived; its missing bytes are 0 between blocks. */
  #type = 0
  #blockBytes = 0
  #missingBytes = 0
  readonly #trailer = Buffer.alloc(TRAILER_BYTES)
  /** The block so far, if it is kept. */
  #held: Buffer[] | undefined
  #header: Buffer[] = []
  #headerBytes = 0
  #isHeaderKept: boolean

  /** `name` is what errors call the file. */
  constructor(name: string, options: PcapngBoundaryOptions = {}) {
    this.#name = name
    this.#options = options
    this.#isHeaderKept = options.headerBytesMax !== undefined
  }

  /** Whether the bytes so far are whole blocks, at least one. */
  get atBoundary(): boolean {
    return this.#from === this.#fedBytes && (this.#from > 0 || this.#options.isBegun === true)
  }

  /** Bytes up to the end of the last complete block. */
  get wholeBytes(): number {
    return this.#from
  }

  /** Distance to the beginning of the next block; undefined while the head of a block is split. */
  get bytesToNextBlock(): number | undefined {
    return this.#headBytes === 0 ? this.#missingBytes : undefined
  }

  /**
   * The section header and the interface descriptions of the complete blocks: in front of later blocks, they make a
   * file. Undefined if they are longer than `headerBytesMax`.
   */
  get header(): Buffer | undefined {
    if (!this.#isHeaderKept) return undefined
    if (this.#header.length > 1) this.#header = [Buffer.concat(this.#header)]
    return this.#header[0] ?? Buffer.alloc(0)
  }

  /** Bytes that the header will have at the beginning of the next block; undefined if it is not kept. */
  get headerBytesAtNextBlock(): number | undefined {
    if (!this.#isHeaderKept) return undefined
    const isHeader = this.#missingBytes > 0 && isOfHeader(this.#type)
    return this.#headerBytes + (isHeader ? this.#blockBytes : 0)
  }

  /**
   * Fails with device-protocol at anything that is not such a file. Pieces that are rejected do not count, because they
   * are not passed on.
   */
  feed(pieces: readonly Uint8Array[]): void {
    const [from, fedBytes, kept] = [this.#from, this.#fedBytes, this.#header.length]
    try {
      for (const { buffer, byteOffset, byteLength } of pieces)
        this.#feedPiece(Buffer.from(buffer, byteOffset, byteLength))
    } catch (error) {
      this.#from = from
      this.#fedBytes = fedBytes
      this.#header.length = Math.min(this.#header.length, kept)
      throw error
    }
  }

  #feedPiece(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#missingBytes > 0) at += this.#goOn(bytes.subarray(at))
      else if (this.#headBytes === 0 && bytes.length - at >= HEAD_BYTES) at = this.#skipBlocks(bytes, at)
      else at += this.#feedSplitHead(bytes.subarray(at))
    }
    this.#fedBytes += bytes.length
  }

  /** Skips the blocks that are whole and not kept, and begins the next one; returns the position reached. */
  #skipBlocks(bytes: Buffer, start: number): number {
    let at = start
    while (at + HEAD_BYTES <= bytes.length) {
      this.#begin(bytes, at)
      const end = at + this.#blockBytes
      if (this.#held !== undefined || end > bytes.length) {
        this.#held?.push(Buffer.from(bytes.subarray(at, at + HEAD_BYTES)))
        return at + HEAD_BYTES
      }
      this.#end(bytes.readUInt32LE(end - TRAILER_BYTES))
      at = end
    }
    return at
  }

  #feedSplitHead(bytes: Buffer): number {
    const taken = bytes.copy(this.#head, this.#headBytes, 0, HEAD_BYTES - this.#headBytes)
    this.#headBytes += taken
    if (this.#headBytes < HEAD_BYTES) return taken
    this.#headBytes = 0
    this.#begin(this.#head, 0)
    this.#held?.push(Buffer.from(this.#head))
    return taken
  }

  /** Consumes bytes of the current block after its head; returns how many. */
  #goOn(bytes: Buffer): number {
    const taken = bytes.subarray(0, this.#missingBytes)
    this.#held?.push(Buffer.from(taken))
    const trailerFrom = this.#missingBytes - TRAILER_BYTES
    this.#missingBytes -= taken.length
    if (taken.length > trailerFrom)
      taken.copy(this.#trailer, Math.max(0, -trailerFrom), Math.max(0, trailerFrom))
    if (this.#missingBytes === 0) this.#end(this.#trailer.readUInt32LE(0))
    return taken.length
  }

  #begin(bytes: Buffer, at: number): void {
    const type = bytes.readUInt32LE(at)
    const blockBytes = bytes.readUInt32LE(at + 4)
    const isFirst = this.#from === 0 && this.#options.isBegun !== true
    if (isFirst !== (type === PcapngBlockType.sectionHeader))
      throw this.#fault('is not a pcapng file of one section')
    if (blockBytes < SMALLEST_BLOCK_BYTES || blockBytes > BLOCK_BYTES_MAX || blockBytes % 4 !== 0)
      throw this.#fault(`has a block of ${blockBytes} bytes`)
    if (isFirst && bytes.readUInt32LE(at + 8) !== BYTE_ORDER_MAGIC)
      throw this.#fault('is not a little-endian pcapng file')
    this.#type = type
    this.#blockBytes = blockBytes
    this.#missingBytes = blockBytes - HEAD_BYTES
    this.#held = this.#keeps(type, blockBytes) ? [] : undefined
  }

  #keeps(type: number, blockBytes: number): boolean {
    const { headerBytesMax = 0, onStatistics } = this.#options
    if (type === PcapngBlockType.interfaceStatistics) return onStatistics !== undefined
    if (!isOfHeader(type) || !this.#isHeaderKept) return false
    if (this.#headerBytes + blockBytes > headerBytesMax) {
      this.#isHeaderKept = false
      this.#header = []
    }
    return this.#isHeaderKept
  }

  #end(blockBytesAgain: number): void {
    if (blockBytesAgain !== this.#blockBytes) throw this.#fault('has a block with two lengths')
    this.#missingBytes = 0
    this.#from += this.#blockBytes
    if (isOfHeader(this.#type)) this.#headerBytes += this.#blockBytes
    const held = this.#held
    this.#held = undefined
    if (held === undefined) return
    if (isOfHeader(this.#type)) this.#header.push(...held)
    else this.#options.onStatistics?.(Buffer.concat(held))
  }

  #fault(what: string): CapfleetError {
    return new CapfleetError('device-protocol', `${this.#name} ${what}, at byte ${this.#from}`)
  }
}

function isOfHeader(type: number): boolean {
  return type === PcapngBlockType.sectionHeader || type === PcapngBlockType.interfaceDescription
}
