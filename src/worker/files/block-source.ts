/**
 * The blocks of a merge in pcapng on their way into files: cut where a file is full, and counted. Each file has its own
 * interfaces, numbered in the order of their first packets, and an end. A file grows by windows, whose merges number
 * their interfaces again from 0.
 */

import type { WrittenInterface } from '../../gateway/export/export-record.ts'
import { type FileInterfaces, STATISTICS_BYTES } from '../../gateway/pcap/file-interfaces.ts'
import {
  countOption,
  IN_NANOSECONDS,
  INTERFACE_FIELDS_BYTES,
  interfaceDescription,
  interfaceStatistics,
  PcapngBlockType,
  PcapngOption,
  readBlock,
  textOption,
} from '../../shared/pcap/pcapng-blocks.ts'
import { endComment } from '../../shared/pcap/pcapng-end.ts'
import { DividedChunks } from './divided-chunks.ts'
import type { EndedFile, PacketCounts, PacketSource, TakeLimit } from './packet-source.ts'

/** What the end of a file says beside its packets. */
export interface FileRemarks {
  /** What is missing, in short. */
  readonly lacks: readonly string[]
  /** Further comments. */
  readonly comments: readonly string[]
  /** The time of the first packet that a limit cut off, once all blocks have been taken. */
  readonly nextNs: () => bigint | undefined
}

export interface BlockSourceOptions {
  /** The interfaces of the merge. */
  readonly merged: FileInterfaces
  /** The interfaces of the open file. */
  readonly written: readonly WrittenInterface[]
  /** The snaplen of every interface. */
  readonly snaplen: number
  readonly remarks: FileRemarks
  /** Time of the end of a file without packets. */
  readonly beginNs: bigint
  /** Name of the interface of a file without packets. */
  readonly nameOfNone: string
  /** MaxBytes, or Infinity. */
  readonly fileBytesMax: number
}

interface FileInterface {
  readonly description: Buffer
  /** Undefined as long as the file does not describe it. */
  number: number | undefined
  packets: number
  comments: readonly string[]
}

const SNAPLEN_OFFSET = 12
const NUMBER_OFFSET = 8
const TIME_OFFSET = 12
/** A device names at most that many of each kind. */
const COMMENTS_MAX = 100
const ETHERNET = 1
const NOTHING = Buffer.alloc(0)
const UINT64_MAX = 2n ** 64n - 1n
const LATEST_NS = 2n ** 63n - 1n
/** What an option takes beside its text, with padding. */
const OPTION_BYTES = 8

export class BlockSource implements PacketSource {
  readonly #chunks: DividedChunks<Buffer>
  readonly #options: BlockSourceOptions
  readonly #endBytes: number
  /** The descriptions of the merge's interfaces, by its numbers. */
  readonly #descriptions: Buffer[] = []
  /** The interfaces of the current file, by the merge's numbers. */
  #ofMerge: (FileInterface | undefined)[] = []
  /** By what identifies them. */
  #ofFile = new Map<string, FileInterface>()
  /** How many of them the file describes. */
  #numbered = 0

  constructor(blocks: AsyncIterable<Buffer>, options: BlockSourceOptions) {
    this.#chunks = new DividedChunks(blocks, () => this.#takeRemarks())
    this.#options = options
    this.#endBytes = endBytes(options.remarks.lacks)
    for (const { description, number, packets, comments } of options.written) {
      const block = Buffer.from(description, 'base64')
      this.#ofFile.set(keyOf(block), { description: block, number: number ?? undefined, packets, comments })
    }
    this.#numbered = this.#described.length
  }

  get hasMore(): boolean {
    return this.#chunks.hasMore
  }

  get interfaces(): readonly WrittenInterface[] {
    return [...this.#ofFile.values()].map(({ description, number, packets, comments }) => ({
      description: description.toString('base64'),
      number: number ?? null,
      packets,
      comments,
    }))
  }

  async *take(
    first: Uint8Array,
    { maxBytes, takesOne }: TakeLimit,
    onCounts: (counts: PacketCounts) => void,
  ): AsyncGenerator<Uint8Array, void> {
    if (first.length > 0) {
      this.#ofFile = new Map()
      this.#ofMerge = []
      this.#numbered = 0
      yield first
    }
    let given = 0
    for (let chunk = await this.#chunks.next(); chunk !== undefined; chunk = await this.#chunks.next()) {
      const limit = { maxBytes: maxBytes - given, takesOne: takesOne && given === 0 }
      const taken = this.#translate(chunk, limit)
      const isFull = taken.end < chunk.length
      if (isFull) this.#chunks.giveBack(chunk.subarray(taken.end))
      if (taken.counts !== undefined) {
        onCounts(taken.counts)
        given += taken.counts.bytes
        yield taken.blocks
      }
      if (isFull) return
    }
  }

  closing({ packets, lastNs, maxBytes, bytes }: EndedFile): Buffer {
    const all = this.#closing({ packets, lastNs }, { isFull: true })
    const room = Math.min(maxBytes, this.#options.fileBytesMax - bytes)
    return all.length <= room ? all : this.#closing({ packets, lastNs }, { isFull: false })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#chunks[Symbol.asyncDispose]()
  }

  /** The blocks at the beginning of `chunk` as they are written to the file, and where the others begin. */
  #translate(chunk: Buffer, { maxBytes, takesOne }: TakeLimit): TakenBlocks {
    const parts: Buffer[] = []
    const times = new Times()
    let bytes = 0
    /** Where the blocks begin that are not in the parts yet. */
    let from = 0
    let at = 0
    while (at < chunk.length) {
      const end = at + chunk.readUInt32LE(at + 4)
      if (chunk.readUInt32LE(at) === PcapngBlockType.interfaceDescription) {
        this.#descriptions.push(this.#fileDescription(chunk.subarray(at, end)))
        parts.push(chunk.subarray(from, at))
        from = end
      } else {
        const one = this.#interfaceOf(chunk.readUInt32LE(at + NUMBER_OFFSET))
        const described = one.number === undefined ? one.description : NOTHING
        const needed = bytes + described.length + end - at
        const isFull = needed + this.#closingBytes(one) > maxBytes
        if (isFull && !(takesOne && times.packets === 0)) break
        if (one.number === undefined) {
          one.number = this.#numbered++
          parts.push(chunk.subarray(from, at), described)
          from = at
        }
        chunk.writeUInt32LE(one.number, at + NUMBER_OFFSET)
        one.packets += 1
        times.add(chunk.readUInt32LE(at + TIME_OFFSET), chunk.readUInt32LE(at + TIME_OFFSET + 4))
        bytes = needed
      }
      at = end
    }
    parts.push(chunk.subarray(from, at))
    const [only = NOTHING] = parts
    return { blocks: parts.length === 1 ? only : Buffer.concat(parts), end: at, counts: times.counts(bytes) }
  }

  /** All interfaces of a file have the same snaplen, however its windows were divided. */
  #fileDescription(block: Buffer): Buffer {
    const own = Buffer.from(block)
    own.writeUInt32LE(this.#options.snaplen, SNAPLEN_OFFSET)
    return own
  }

  #interfaceOf(numberInMerge: number): FileInterface {
    const known = this.#ofMerge[numberInMerge]
    if (known !== undefined) return known
    const description = this.#descriptions[numberInMerge]
    if (description === undefined) throw new Error('a merge describes each interface before its packets')
    const found = this.#inFile(description)
    this.#ofMerge[numberInMerge] = found
    return found
  }

  #inFile(description: Buffer): FileInterface {
    const key = keyOf(description)
    const known = this.#ofFile.get(key)
    if (known !== undefined) return known
    const added = { description, number: undefined, packets: 0, comments: [] }
    this.#ofFile.set(key, added)
    return added
  }

  /** In the order of their numbers. */
  get #described(): readonly FileInterface[] {
    return [...this.#ofFile.values()]
      .filter(({ number }) => number !== undefined)
      .sort((a, b) => (a.number ?? 0) - (b.number ?? 0))
  }

  /** At least that much follows the packets, also one of this interface. */
  #closingBytes({ number }: FileInterface): number {
    const interfaces = this.#numbered + (number === undefined ? 1 : 0)
    return interfaces * STATISTICS_BYTES + this.#endBytes
  }

  /** What the devices said of their interfaces at the end of the window; also of those without packets. */
  #takeRemarks(): void {
    for (const { description, comments } of this.#options.merged.remarks()) {
      if (comments.length === 0) continue
      const one = this.#inFile(this.#fileDescription(description))
      one.comments = [...new Set([...one.comments, ...comments])].slice(0, COMMENTS_MAX)
    }
  }

  #closing(
    { packets, lastNs }: Pick<EndedFile, 'packets' | 'lastNs'>,
    { isFull }: { readonly isFull: boolean },
  ): Buffer {
    const { remarks, beginNs } = this.#options
    const described = this.#described
    const others = [...this.#ofFile.values()].filter(({ number }) => number === undefined)
    // A file needs an interface, even one without packets.
    const needed = described.length > 0 ? [] : [others[0] ?? this.#none()]
    const added = isFull && others.length > 0 ? others : needed
    const all = [...described, ...added]
    const end = endComment({ packets, corruptBlocks: 0n, nextNs: remarks.nextNs(), lacks: remarks.lacks })
    const blocks = all.map(({ packets: delivered, comments }, interfaceNumber) => {
      const isLast = interfaceNumber === all.length - 1
      const texts = [
        ...(isLast ? [end] : []),
        ...(isFull && isLast ? remarks.comments.slice(0, COMMENTS_MAX) : []),
        ...(isFull ? comments : []),
      ]
      return interfaceStatistics({ interfaceNumber, atNs: lastNs ?? beginNs }, [
        ...texts.map((text) => textOption(PcapngOption.comment, text)),
        countOption(PcapngOption.statisticsDelivered, BigInt(delivered)),
      ])
    })
    return Buffer.concat([...added.map(({ description }) => description), ...blocks])
  }

  #none(): FileInterface {
    const { snaplen, nameOfNone } = this.#options
    const name = textOption(PcapngOption.interfaceName, nameOfNone)
    const description = interfaceDescription({ linkType: ETHERNET, snaplen }, [name, IN_NANOSECONDS])
    return { description, number: undefined, packets: 0, comments: [] }
  }
}

interface TakenBlocks {
  readonly blocks: Buffer
  readonly end: number
  /** Undefined if there is no packet. */
  readonly counts: PacketCounts | undefined
}

/** Collects the earliest and the latest time without a bigint for each packet. */
class Times {
  packets = 0
  #first: readonly [number, number] = [0, 0]
  #last: readonly [number, number] = [0, 0]

  add(high: number, low: number): void {
    const isFirst = this.packets === 0
    this.packets += 1
    if (isFirst || isLess(high, low, this.#first)) this.#first = [high, low]
    if (isFirst || !isLess(high, low, this.#last)) this.#last = [high, low]
  }

  counts(bytes: number): PacketCounts | undefined {
    if (this.packets === 0) return undefined
    return { packets: this.packets, bytes, firstNs: nsOf(this.#first), lastNs: nsOf(this.#last) }
  }
}

function isLess(high: number, low: number, [otherHigh, otherLow]: readonly [number, number]): boolean {
  return high < otherHigh || (high === otherHigh && low < otherLow)
}

function nsOf([high, low]: readonly [number, number]): bigint {
  return (BigInt(high) << 32n) | BigInt(low)
}

/** The bytes of an end of the file that has no more comments than it needs. */
export function endBytes(lacks: readonly string[]): number {
  const longest = endComment({ packets: UINT64_MAX, corruptBlocks: 0n, nextNs: LATEST_NS, lacks })
  return Buffer.byteLength(longest) + OPTION_BYTES
}

/** An interface is known by its name and link type. */
function keyOf(description: Buffer): string {
  const { fields, options } = readBlock(description, INTERFACE_FIELDS_BYTES)
  const name = options.find(({ code }) => code === PcapngOption.interfaceName)
  return `${fields.readUInt16LE(0)} ${name === undefined ? '' : Buffer.from(name.value).toString()}`
}
