/**
 * TypeScript interface of what the engine's merge needs for pcapng: streams of it as records, and the interfaces that a
 * merge describes. Everything runs on the calling thread.
 */
import { loadAddon } from './load-addon.ts'

interface NativePcapngRecords {
  show(bytes: Uint8Array): void
  advance(): number
  recordsAt(): number | undefined
  recordsBytes(): number
  records(): Buffer
  addInterface(tag: number): void
  block(): Buffer
  statisticsTag(): number
  remarked(): RemarkedPacket
  failure(): string
  isBetweenBlocks(): boolean
}

interface NativeInterfaces {
  add(name: string, linkType: number, description: Uint8Array): number
  describe(id: number, description: Uint8Array): void
  remark(id: number, atNs: bigint, options: Uint8Array): void
  at(id: number): MergedInterface
}

const engine = loadAddon<{
  readonly PcapngRecords: new () => NativePcapngRecords
  readonly MergedInterfaces: new () => NativeInterfaces
}>('capfleet-gateway')

/** Must match PcapngRecords::State of the engine, in its order. */
const STATES = ['dry', 'records', 'interface', 'statistics', 'remark', 'broken'] as const

/** A packet that has options. */
export interface RemarkedPacket {
  readonly tag: number
  readonly ns: bigint
}

/** What is told of the blocks that are not packets. Blocks are whole, options without what frames them. */
export interface PcapngBlocks {
  /** Returns the tag of the packets of the next interface. */
  interface(block: Buffer): number
  /** Statistics of the interface with the tag. */
  statistics(tag: number, block: Buffer): void
  remark(packet: RemarkedPacket, options: Buffer): void
}

/**
 * The records of one stream of pcapng as capfleet devices write it, for a RecordInput with `isTagged`. Each begins with the
 * tag of its interface, 4 bytes, which count as captured.
 */
export class PcapngRecords {
  readonly #native = new engine.PcapngRecords()
  readonly #blocks: PcapngBlocks
  #shown: Uint8Array = new Uint8Array()

  constructor(blocks: PcapngBlocks) {
    this.#blocks = blocks
  }

  /**
   * Passes the next bytes. Records are written into them, so they must stay valid as long as those are used. REQUIRES:
   * next() has returned undefined.
   */
  show(bytes: Uint8Array): void {
    this.#shown = bytes
    this.#native.show(bytes)
  }

  /**
   * The next records, of whole packets; undefined if more bytes are needed. Throws an Error that says what is wrong with
   * the bytes.
   */
  next(): Uint8Array | undefined {
    for (;;) {
      switch (STATES[this.#native.advance()]) {
        case 'records':
          return this.#records()
        case 'interface':
          this.#native.addInterface(this.#blocks.interface(this.#native.block()))
          break
        case 'statistics':
          this.#blocks.statistics(this.#native.statisticsTag(), this.#native.block())
          break
        case 'remark':
          this.#blocks.remark(this.#native.remarked(), this.#native.block())
          break
        case 'dry':
          return undefined
        default:
          throw new Error(this.#native.failure())
      }
    }
  }

  #records(): Uint8Array {
    const at = this.#native.recordsAt()
    if (at === undefined) return this.#native.records()
    return this.#shown.subarray(at, at + this.#native.recordsBytes())
  }

  /** Whether the stream may end here. */
  get isBetweenBlocks(): boolean {
    return this.#native.isBetweenBlocks()
  }
}

/** What a merge has written of an interface. */
export interface MergedInterface {
  /** Its number in the file; undefined as long as it has not been described there. */
  readonly number: number | undefined
  readonly packets: number
  /** Packets left out as copies of others. */
  readonly duplicates: number
}

/** Interfaces of a merge that is written as pcapng. They get numbers in the order of their first packets. */
export class MergedInterfaces {
  readonly native = new engine.MergedInterfaces()

  /** Returns the identifier, by which records are tagged. */
  add(name: string, linkType: number, description: Uint8Array): number {
    return this.native.add(name, linkType, description)
  }

  /** Replaces the description of an interface that has not been written. */
  describe(id: number, description: Uint8Array): void {
    this.native.describe(id, description)
  }

  /** The next packet of the interface that is not before `atNs` gets these options, which do not end the list. */
  remark(id: number, atNs: bigint, options: Uint8Array): void {
    this.native.remark(id, atNs, options)
  }

  at(id: number): MergedInterface {
    return this.native.at(id)
  }
}
