/** KeptRecords for exports in pcapng: the packets of its files with the tags of their interfaces. */
import type { KeptPlace } from '../../gateway/export/export-record.ts'
import type { FileInterfaces } from '../../gateway/pcap/file-interfaces.ts'
import { recordsOfFile, TAGGED_HEADER } from '../../gateway/pcap/tagged-records.ts'
import { PcapngBlockType } from '../../shared/pcap/pcapng-blocks.ts'
import { PcapngBoundary } from '../../shared/pcap/pcapng-boundary.ts'
import { KeptBytes, type KeptFiles } from './kept-bytes.ts'

const HEAD_BYTES = 20
const HEADER_BYTES_MAX = 16 * 2 ** 20

export class KeptBlocks implements AsyncDisposable {
  readonly #bytes: KeptBytes
  /** Of the current file: what the numbers of its interfaces mean. */
  #header: Buffer
  /** The number of that file. */
  #file: number

  /** Continues at `place`. */
  constructor(kept: KeptFiles, place: KeptPlace) {
    this.#bytes = new KeptBytes(kept, { place, headBytes: 0 })
    this.#header = Buffer.from(place.header ?? '', 'base64')
    this.#file = place.file
  }

  /** The position after the last block that was consumed. */
  get place(): KeptPlace {
    const { place } = this.#bytes
    return place.file === this.#file ? { ...place, header: this.#header.toString('base64') } : place
  }

  /**
   * All packets up to the first one that is not before `untilNs`, as a PCAP of which each begins with the tag of its
   * interface; undefined: all that are left. Must be read to its end before the next ones are taken.
   */
  async *take(untilNs: bigint | undefined, interfaces: FileInterfaces): AsyncGenerator<Uint8Array, void> {
    yield TAGGED_HEADER
    let convert = recordsOfFile(interfaces)
    convert(this.#header)
    for (;;) {
      if (this.#bytes.place.file !== this.#file) {
        this.#file = this.#bytes.place.file
        this.#header = Buffer.alloc(0)
        convert = recordsOfFile(interfaces)
      }
      const { buffer, byteOffset, byteLength } = this.#bytes.rest
      const rest = Buffer.from(buffer, byteOffset, byteLength)
      const { end, isCut } = blocksBefore(rest, untilNs)
      yield* convert(this.#consume(rest.subarray(0, end)))
      if (isCut || !(await this.#bytes.read())) return
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#bytes[Symbol.asyncDispose]()
  }

  /** REQUIRES: whole blocks. */
  #consume(blocks: Buffer): Buffer {
    this.#bytes.consume(blocks.length)
    const isBegun = this.#header.length > 0
    const boundary = new PcapngBoundary('a file of the export', { isBegun, headerBytesMax: HEADER_BYTES_MAX })
    boundary.feed([blocks])
    this.#header = Buffer.concat([this.#header, boundary.header ?? Buffer.alloc(0)])
    return blocks
  }
}

/** How many bytes at the beginning are whole blocks with packets before the limit, and whether the next one is not. */
function blocksBefore(
  bytes: Buffer,
  untilNs: bigint | undefined,
): { readonly end: number; readonly isCut: boolean } {
  let at = 0
  while (at + HEAD_BYTES <= bytes.length) {
    const isPacket = bytes.readUInt32LE(at) === PcapngBlockType.enhancedPacket
    const ns = (BigInt(bytes.readUInt32LE(at + 12)) << 32n) | BigInt(bytes.readUInt32LE(at + 16))
    if (isPacket && untilNs !== undefined && ns >= untilNs) return { end: at, isCut: true }
    const end = at + bytes.readUInt32LE(at + 4)
    if (end > bytes.length) break
    at = end
  }
  return { end: at, isCut: false }
}
