/**
 * The engine's merge of PCAP streams, as TypeScript sees it: inputs that show the records of a stream,
 * and the order in which they go out. Nothing waits here, and all of it runs on the calling thread.
 */
import { loadAddon } from './load-addon.ts'

export interface RecordInputOptions {
  /** Whether record timestamps count nanoseconds (else microseconds) within the second. */
  readonly nanoseconds: boolean
  /** Fractions become nanoseconds. */
  readonly widens?: boolean | undefined
  /** Byte order of the stream. Records are little-endian in any case. */
  readonly bigEndian?: boolean | undefined
  /** Subtracted from every timestamp. What PCAP cannot carry becomes its first or last instant. */
  readonly alignNs?: bigint | undefined
  /** Mark the tail also while the packets are in order. */
  readonly marksTail?: boolean | undefined
  /** The tail is all packets. */
  readonly marksAll?: boolean | undefined
  /** Packets may come late: they are held back, and sorted. REQUIRES: records in nanoseconds. */
  readonly sortWindow?: SortWindow | undefined
}

/** How long records are held back (native/engine/merge/sort_window.h). */
export interface SortWindow {
  /** Until a record this much later has come. */
  readonly ns: bigint
  /** Or until more bytes than this are held. */
  readonly bytes: number
}

/** Packets at the end of those taken: how many, and the hash of all of them in order. */
export interface RecordMark {
  readonly packets: number
  /** Bytes of the records of these packets, their headers included. */
  readonly bytes: number
  readonly hash: bigint
}

/** What was taken of an input. */
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
 * What came of a stream, in its order, and by which the place behind it is found again in a new stream of the same. With
 * a sort window also what it holds; else what was taken.
 */
export interface ArrivedRecords extends RecordFigures {
  /** The packets of the latest timestamp: the last ones, when none was out of order. */
  readonly ties: RecordMark
  /** The last packets; without any while the packets are in order, unless asked for. */
  readonly tail: RecordMark
}

export interface RecordMergeOptions {
  /** End before the first packet that is this much or more after the first one. */
  readonly maxSpanNs?: bigint | undefined
  readonly maxPackets?: bigint | undefined
  /** Of the records with their headers, without the file header. */
  readonly maxBytes?: bigint | undefined
  /** Leave out what another input had at most so long before. */
  readonly dedupNs?: bigint | undefined
  /** Of all inputs, as the file header has it; for dedupNs. */
  readonly linkType: number
  /** So many captured bytes of each packet, at most. */
  readonly sliceBytes?: number | undefined
  /**
   * Write timestamps in microseconds, truncated behind the merge. Figures and limits stay in nanoseconds.
   */
  readonly toMicroseconds?: boolean
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

type NativeInputOptions = Required<Omit<RecordInputOptions, 'sortWindow'>> &
  Pick<RecordInputOptions, 'sortWindow'>

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
    options: RecordMergeOptions,
  ) => NativeRecordMerge
}>('capfleet-gateway')

const LAST_INT64 = 2n ** 63n - 1n
/** RecordMerge::State of the engine, in its order. */
const STATES = ['ready', 'dry', 'end'] as const

/** The records of one PCAP stream, wherever its chunks end. */
export class RecordInput {
  /** Whether a whole record is at hand; if not, show more of the stream. */
  hasRecord = false
  readonly native: NativeRecordInput

  constructor(options: RecordInputOptions) {
    const { nanoseconds, widens = false, bigEndian = false, alignNs = 0n, sortWindow } = options
    if (sortWindow !== undefined && !nanoseconds && !widens)
      throw new TypeError('only records in nanoseconds can be sorted')
    const { marksTail = false, marksAll = false } = options
    const stream = { nanoseconds, widens, bigEndian, alignNs, marksTail, marksAll }
    this.native = new engine.RecordInput({ ...stream, sortWindow })
  }

  /**
   * The next bytes of the stream, without its file header. They must stay as they are while `hasRecord`;
   * with alignNs or bigEndian, and where they are widened, record headers in them are changed. Only while there is no
   * record at hand.
   */
  show(bytes: Uint8Array): void {
    if (this.hasRecord) throw new Error('an input is shown bytes while it has records')
    this.hasRecord = this.native.show(bytes)
  }

  /** The stream has ended: what a sort window holds is at hand. Only while there is no record at hand. */
  end(): void {
    this.hasRecord = this.native.end()
  }

  /** Drops what was shown and not taken, also the beginning of a record, but for what a sort window has. */
  breakOff(): void {
    this.hasRecord = this.native.breakOff()
  }

  /** Drops what was shown and not taken, also the beginning of a record. */
  forget(): void {
    this.native.forget()
    this.hasRecord = false
  }

  /** Takes up to `count` records that are at hand; returns how many it took. */
  skip(count: number, options: { readonly isHashed: boolean }): number {
    const taken = this.native.skip(count, options.isHashed)
    this.hasRecord = this.native.hasRecord()
    return taken
  }

  /** Of all records that were skipped hashed, as in a RecordMark. */
  get skippedHash(): bigint {
    return this.native.skippedHash()
  }

  /** The captured length of a record that claims more than there may be. Nothing can follow it. */
  get impossibleLength(): number | undefined {
    return this.native.impossibleLength()
  }

  /** Bytes at hand of a record that is not whole. */
  get partialBytes(): number {
    return this.native.partialBytes()
  }

  /** A copy of what was shown and not taken. */
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

  /** At least one input, all in nanoseconds. One that has no record at hand has ended. */
  constructor(inputs: readonly RecordInput[], options: RecordMergeOptions) {
    if (inputs.length === 0) throw new TypeError('a merge needs at least one input')
    this.#inputs = inputs
    const natives = inputs.map((input) => input.native)
    this.#native = new engine.RecordMerge(natives, {
      maxSpanNs: toInt64(options.maxSpanNs),
      maxPackets: toInt64(options.maxPackets),
      maxBytes: toInt64(options.maxBytes),
      dedupNs: toInt64(options.dedupNs),
      linkType: options.linkType,
      sliceBytes: options.sliceBytes,
      toMicroseconds: options.toMicroseconds ?? false,
    })
  }

  /**
   * Appends records to the output until it has no room for the next one ('ready'), an input has none at
   * hand ('dry': fill the input of that number, or know that it has ended, then call refilled()), or
   * nothing may follow ('end').
   */
  advance(output: Uint8Array): 'ready' | 'dry' | 'end' {
    this.#written = this.#native.advance(output, this.#written)
    const state = STATES[this.#native.state()] ?? 'end'
    const dry = state === 'dry' ? this.#inputs[this.dryInput] : undefined
    if (dry !== undefined) dry.hasRecord = false
    return state
  }

  /** How many bytes are in the output. The next one is filled from its beginning. */
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

  /** Timestamp of the first packet that maxPackets or maxBytes left out. */
  get nextNs(): bigint | undefined {
    return this.#native.nextNs()
  }

  /** What was left out of an input, by its number, as duplicates. */
  dropped(input: number): { readonly packets: number; readonly bytes: number } {
    return this.#native.dropped(input)
  }
}

/** Limits beyond 2^63 never hold. A negative one leaves nothing to pass. */
function toInt64(value: bigint | undefined): bigint | undefined {
  if (value === undefined) return undefined
  if (value < 0n) return 0n
  return value > LAST_INT64 ? LAST_INT64 : value
}
