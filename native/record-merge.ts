/**
 * TypeScript interface of the engine's merge of PCAP streams: inputs that provide the records of a stream, and the
 * order in which they are output. Nothing waits here, and everything runs on the calling thread.
 */
import { DEDUP_KEY_NUMBERS, type DedupBy } from './dedup-keys.ts'
import { loadAddon } from './load-addon.ts'
import type { MergedInterfaces } from './pcapng-records.ts'

export interface RecordInputOptions {
  /** Whether record timestamps count nanoseconds (else microseconds) within the second. */
  readonly nanoseconds: boolean
  /** Whether fractions are converted to nanoseconds. */
  readonly widens?: boolean | undefined
  /** Byte order of the stream. Records are always returned little-endian. */
  readonly bigEndian?: boolean | undefined
  /** Subtracted from every timestamp. A time that PCAP cannot represent becomes its first or last instant. */
  readonly alignNs?: bigint | undefined
  /** Whether to mark the tail even while the packets are in order. */
  readonly marksTail?: boolean | undefined
  /** Whether the tail includes all packets. */
  readonly marksAll?: boolean | undefined
  /** Whether records begin with the tag of their interface (pcapng-records.ts). */
  readonly isTagged?: boolean | undefined
  /** Set if packets may be late: they are held back and sorted. REQUIRES: records in nanoseconds. */
  readonly sortWindow?: SortWindow | undefined
}

/** How long records are held back (native/engine/merge/sort_window.h). */
export interface SortWindow {
  /** Until a record this much later has arrived. */
  readonly ns: bigint
  /** Or until more bytes than this are held. */
  readonly bytes: number
  /** Records outside of this time are dropped. Default: none. With alignNs, this is the time after the subtraction. */
  readonly range?: RecordRange | undefined
}

/** A half-open range of timestamps. */
export interface RecordRange {
  readonly beginNs: bigint
  readonly endNs: bigint
}

/** Packets at the end of those consumed: how many, and the hash of all of them in order. */
export interface RecordMark {
  readonly packets: number
  /** Bytes of the records of these packets, including their headers. */
  readonly bytes: number
  readonly hash: bigint
}

/** What was consumed of an input. */
export interface RecordFigures {
  readonly packets: number
  /** Bytes of those packets as records: 16-byte headers and captured bytes. */
  readonly bytes: number
  /** Packets whose timestamp was before one already taken. */
  readonly outOfOrder: number
  /** Timestamp of the first packet, and the latest timestamp; undefined before the first packet. */
  readonly firstNs: bigint | undefined
  readonly lastNs: bigint | undefined
}

/**
 * What has arrived of a stream, in its order, for finding the position after it in a new copy of the stream. Includes
 * what a sort window holds; otherwise what was consumed.
 */
export interface ArrivedRecords extends RecordFigures {
  /** The packets with the latest timestamp: the last ones, if none was out of order. */
  readonly ties: RecordMark
  /** The last packets; empty while the packets are in order, unless requested. */
  readonly tail: RecordMark
}

export interface RecordMergeOptions {
  /** End before the first packet that is this much or more after the first one. */
  readonly maxSpanNs?: bigint | undefined
  readonly maxPackets?: bigint | undefined
  /** Size of the records with their headers, without the file header; in pcapng, of all blocks from here on. */
  readonly maxBytes?: bigint | undefined
  /** Drop packets that are copies of one written at most this long before. */
  readonly dedupNs?: bigint | undefined
  /** What copies have in common. Default: payload. */
  readonly dedupBy?: DedupBy | undefined
  /** Of all inputs, as in the file header; for dedupNs. */
  readonly linkType: number
  /** Maximum number of captured bytes per packet. */
  readonly sliceBytes?: number | undefined
  /** Write timestamps in microseconds, truncated after the merge. Figures and limits stay in nanoseconds. */
  readonly toMicroseconds?: boolean
  /** Write blocks of pcapng instead of records. */
  readonly pcapng?: PcapngOutput | undefined
}

export interface PcapngOutput {
  readonly interfaces: MergedInterfaces
  /** The interface of each input; undefined for one whose records are tagged. */
  readonly ofInputs: readonly (number | undefined)[]
  /** What the caller writes at the end for each interface with packets; counts for maxBytes. */
  readonly closingBytes: number
}

interface NativeRecordInput {
  show(bytes: Uint8Array): boolean
  end(): boolean
  breakOff(): boolean
  forget(): void
  hasRecord(): boolean
  skip(count: number, isHashed: boolean): number
  skippedHash(): bigint
  impossibleLength(): number | undefined
  partialBytes(): number
  untaken(): Buffer
  figures(): RecordFigures
  arrived(): ArrivedRecords
}

interface NativeSortWindow extends Pick<SortWindow, 'ns' | 'bytes'> {
  readonly fromNs: bigint
  readonly toNs: bigint
}

type NativeInputOptions = Required<Omit<RecordInputOptions, 'sortWindow'>> & {
  readonly sortWindow: NativeSortWindow | undefined
}

type NativePcapngOutput = Omit<PcapngOutput, 'interfaces'> & {
  readonly interfaces: MergedInterfaces['native']
}

interface NativeRecordMerge {
  advance(output: Uint8Array, written: number): number
  state(): number
  dryInput(): number
  refilled(): void
  nextNs(): bigint | undefined
  dropped(input: number): { readonly packets: number; readonly bytes: number }
}

const engine = loadAddon<{
  readonly RecordInput: new (options: NativeInputOptions) => NativeRecordInput
  readonly RecordMerge: new (
    inputs: readonly NativeRecordInput[],
    options: Omit<RecordMergeOptions, 'dedupBy' | 'pcapng'> & {
      readonly dedupKey: number
      readonly pcapng: NativePcapngOutput | undefined
    },
  ) => NativeRecordMerge
}>('capfleet-gateway')

const LAST_INT64 = 2n ** 63n - 1n
/** Must match RecordMerge::State of the engine, in its order. */
const STATES = ['ready', 'dry', 'end'] as const

/** The records of one PCAP stream, wherever its chunks end. */
export class RecordInput {
  /** Whether a complete record is available; if not, show more of the stream. */
  hasRecord = false
  readonly native: NativeRecordInput

  constructor(options: RecordInputOptions) {
    const { nanoseconds, widens = false, bigEndian = false, alignNs = 0n, sortWindow } = options
    if (sortWindow !== undefined && !nanoseconds && !widens)
      throw new TypeError('only records in nanoseconds can be sorted')
    const { marksTail = false, marksAll = false, isTagged = false } = options
    const stream = { nanoseconds, widens, bigEndian, alignNs, marksTail, marksAll, isTagged }
    this.native = new engine.RecordInput({ ...stream, sortWindow: sortWindow && nativeWindow(sortWindow) })
  }

  /**
   * Passes the next bytes of the stream, without its file header. They must not change while `hasRecord`; with alignNs
   * or bigEndian, and if they are widened, record headers in them are modified. Only while no record is available.
   */
  show(bytes: Uint8Array): void {
    if (this.hasRecord) throw new Error('an input is shown bytes while it has records')
    this.hasRecord = this.native.show(bytes)
  }

  /** The stream has ended: what a sort window holds becomes available. Only while no record is available. */
  end(): void {
    this.hasRecord = this.native.end()
  }

  /** Drops what was passed and not consumed, including the beginning of a record, except for what a sort window has. */
  breakOff(): void {
    this.hasRecord = this.native.breakOff()
  }

  /** Drops what was passed and not consumed, including the beginning of a record. */
  forget(): void {
    this.native.forget()
    this.hasRecord = false
  }

  /** Consumes up to `count` available records; returns how many. */
  skip(count: number, options: { readonly isHashed: boolean }): number {
    const taken = this.native.skip(count, options.isHashed)
    this.hasRecord = this.native.hasRecord()
    return taken
  }

  /** Hash of all records that were skipped with isHashed, as in a RecordMark. */
  get skippedHash(): bigint {
    return this.native.skippedHash()
  }

  /** The captured length of a record that claims more than allowed. Nothing can follow it. */
  get impossibleLength(): number | undefined {
    return this.native.impossibleLength()
  }

  /** Available bytes of an incomplete record. */
  get partialBytes(): number {
    return this.native.partialBytes()
  }

  /** A copy of what was passed and not consumed. */
  untaken(): Buffer {
    return this.native.untaken()
  }

  figures(): RecordFigures {
    return this.native.figures()
  }

  arrived(): ArrivedRecords {
    return this.native.arrived()
  }
}

/**
 * Moves the records of several inputs into outputs. Order: (running maximum of the input's timestamps,
 * position in the list of inputs, arrival).
 */
export class RecordMerge {
  readonly #inputs: readonly RecordInput[]
  readonly #native: NativeRecordMerge
  #written = 0

  /** At least one input, all in nanoseconds. One without an available record has ended. */
  constructor(inputs: readonly RecordInput[], options: RecordMergeOptions) {
    if (inputs.length === 0) throw new TypeError('a merge needs at least one input')
    this.#inputs = inputs
    const natives = inputs.map((input) => input.native)
    this.#native = new engine.RecordMerge(natives, {
      maxSpanNs: toInt64(options.maxSpanNs),
      maxPackets: toInt64(options.maxPackets),
      maxBytes: toInt64(options.maxBytes),
      dedupNs: toInt64(options.dedupNs),
      dedupKey: DEDUP_KEY_NUMBERS[options.dedupBy ?? 'payload'],
      linkType: options.linkType,
      sliceBytes: options.sliceBytes,
      toMicroseconds: options.toMicroseconds ?? false,
      pcapng: options.pcapng && { ...options.pcapng, interfaces: options.pcapng.interfaces.native },
    })
  }

  /**
   * Appends records to the output until it has no room for the next one ('ready'), an input has none available ('dry':
   * fill the input of that number, or determine that it has ended, then call refilled()), or nothing may follow
   * ('end').
   */
  advance(output: Uint8Array): 'ready' | 'dry' | 'end' {
    this.#written = this.#native.advance(output, this.#written)
    const state = STATES[this.#native.state()] ?? 'end'
    const dry = state === 'dry' ? this.#inputs[this.dryInput] : undefined
    if (dry !== undefined) dry.hasRecord = false
    return state
  }

  /** Number of bytes in the output. The next one is filled from its beginning. */
  takeWritten(): number {
    const written = this.#written
    this.#written = 0
    return written
  }

  get dryInput(): number {
    return this.#native.dryInput()
  }

  refilled(): void {
    this.#native.refilled()
  }

  /** Timestamp of the first packet that maxPackets or maxBytes cut off. */
  get nextNs(): bigint | undefined {
    return this.#native.nextNs()
  }

  /** What an input, given by its number, had and the output has not: duplicates, what was sliced off, and tags. */
  dropped(input: number): { readonly packets: number; readonly bytes: number } {
    return this.#native.dropped(input)
  }
}

function nativeWindow({ ns, bytes, range }: SortWindow): NativeSortWindow {
  // No timestamp is negative.
  return { ns, bytes, fromNs: toInt64(range?.beginNs) ?? 0n, toNs: toInt64(range?.endNs) ?? LAST_INT64 }
}

/** Limits beyond 2^63 never apply. A negative one allows nothing. */
function toInt64(value: bigint | undefined): bigint | undefined {
  if (value === undefined) return undefined
  if (value < 0n) return 0n
  return value > LAST_INT64 ? LAST_INT64 : value
}
