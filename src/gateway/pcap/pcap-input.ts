import {
  type ArrivedRecords,
  type RecordFigures,
  RecordInput,
  type SortWindow,
} from '../../../native/record-merge.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import { parsePcapHeader, type StreamHeader } from '../../shared/pcap/pcap-header.ts'
import { MAX_CAPTURED_LENGTH, PCAP_HEADER_BYTES } from '../../shared/pcap/pcap-sizes.ts'

import { LATE_NS_MAX } from '../device/device-kind.ts'

export type { ArrivedRecords, SortWindow }

/** The bytes of a stream as they arrive. A chunk is valid until the next one is asked for. */
export interface ChunkStream extends AsyncIterator<Uint8Array> {
  /**
   * The next chunk when it is here already; undefined: ask next(). For many small chunks a promise each
   * costs more than their bytes. Fails as next() does; not while a next() is waited for.
   */
  take?(): Uint8Array | undefined
}

/** Of a device that does not vouch for the order of its packets. */
export const SORT_WINDOW: SortWindow = { ns: LATE_NS_MAX, bytes: 4 * 1_048_576 }

/**
 * Asked when a stream breaks off (`cause`), or after a pause (undefined). Resolves to the bytes
 * right after what has arrived, without a file header; to undefined when the input shall end here. All that has
 * arrived was taken, or is in the sort window, from which it is taken later.
 */
export type ResumeInput = (
  cause: unknown,
  arrived: ArrivedRecords,
) => Promise<AsyncIterator<Uint8Array> | undefined>

export interface InputOptions {
  /** How the input goes on behind a stream that broke off; default: the input fails. */
  readonly resume?: ResumeInput
  /** Subtracted from every timestamp. */
  readonly alignNs?: bigint
  /** Mark the last packets also while they are in order, see ArrivedRecords. */
  readonly marksTail?: boolean
  /** As RecordInputOptions. */
  readonly marksAll?: boolean
  /** Timestamps stay in the resolution of the stream. Default: records have nanoseconds. */
  readonly keepsResolution?: boolean
  /** Packets may be late, and are sorted. Default: they are passed on as they come, without a copy or delay. */
  readonly sortWindow?: SortWindow | undefined
}

const NO_BYTES = Buffer.alloc(0)
const PARKED = Symbol('parked')

/**
 * One PCAP stream as an input of a merge: its records, and where more of them come from. Holds one
 * chunk of the stream at a time, which it needs until it asks for the next.
 */
export class PcapInput {
  readonly name: string
  readonly header: StreamHeader
  readonly records: RecordInput
  readonly #options: InputOptions
  #chunks: ChunkStream
  #pulling = false
  #ended = false
  /** Where its stream was given back by park(), and no fill() has asked for another one since: resolved by unpark(). */
  #parked: PromiseWithResolvers<void> | undefined
  #isParked = false
  /** Wakes a wait for the stream when the input is parked. */
  #interrupt: (() => void) | undefined

  /**
   * Reads the file header. `name` is the device's, for errors. Throws device-protocol when the
   * stream does not begin with a PCAP header; an error of `chunks` passes through unchanged. Until
   * this returns, `chunks` stays with the caller; afterwards close() gives it back.
   */
  static async open(name: string, chunks: ChunkStream, options: InputOptions = {}): Promise<PcapInput> {
    let bytes: Uint8Array = NO_BYTES
    while (bytes.byteLength < PCAP_HEADER_BYTES) {
      // A chunk is not valid any more when the next one is asked for.
      const before = Buffer.from(bytes)
      const next = await chunks.next()
      if (next.done === true) break
      bytes = before.byteLength === 0 ? next.value : Buffer.concat([before, next.value])
    }
    return new PcapInput(name, { header: bytes, chunks }, options)
  }

  private constructor(
    name: string,
    stream: { readonly header: Uint8Array; readonly chunks: ChunkStream },
    options: InputOptions,
  ) {
    this.name = name
    this.header = parsePcapHeader(stream.header, name)
    this.#options = options
    this.#chunks = stream.chunks
    const { keepsResolution = false, alignNs, marksTail, marksAll, sortWindow } = options
    const { nanoseconds, isBigEndian: bigEndian } = this.header
    const widens = !nanoseconds && !keepsResolution
    const shown = { nanoseconds, widens, bigEndian, alignNs }
    this.records = new RecordInput({ ...shown, marksTail, marksAll, sortWindow })
    this.records.show(stream.header.subarray(PCAP_HEADER_BYTES))
  }

  /** Live figures of the records that were taken. */
  get figures(): RecordFigures {
    return this.records.figures()
  }

  /** Whether a whole record is at hand; if not, call fill(). */
  get hasRecord(): boolean {
    return this.records.hasRecord
  }

  /** Whether no record comes any more. */
  get ended(): boolean {
    return this.#ended && !this.hasRecord
  }

  /**
   * Reads until a whole record is at hand or the input has ended (`hasRecord` is false then). Asks for
   * a chunk only when there is no whole record in the one before. Throws device-protocol when the
   * input ends inside a record or claims an impossible one.
   */
  async fill(): Promise<void> {
    while (!this.hasRecord) {
      try {
        this.#checkRecord()
        const chunk = await this.#pull()
        if (chunk === undefined) return
        this.records.show(chunk)
      } catch (error) {
        if (this.#ended) throw error
        await this.#resume(error)
      }
    }
  }

  /**
   * Takes what has arrived, and waits for nothing. Whether a whole record is at hand; if not, fill()
   * tells why. Not while a fill() is waited for.
   */
  fillFromArrived(): boolean {
    while (!this.hasRecord) {
      const chunk = this.#takeArrived()
      if (chunk === undefined) return false
      this.records.show(chunk)
    }
    return true
  }

  /** Takes the next `count` records; resolves to how many there were, and to their hash. Fails as fill() does. */
  async skip(count: number): Promise<{ readonly packets: number; readonly hash: bigint }> {
    let packets = 0
    while (packets < count) {
      await this.fill()
      if (!this.hasRecord) break
      packets += this.records.skip(count - packets, { isHashed: true })
    }
    return { packets, hash: this.records.skippedHash }
  }

  /**
   * The bytes that follow the taken records, to the end of the stream. Takes the place of fill(). REQUIRES: timestamps
   * stay as they are.
   */
  async *remaining(): AsyncGenerator<Uint8Array, void> {
    const untaken = this.records.untaken()
    this.records.forget()
    if (untaken.byteLength > 0) yield untaken
    for (;;) {
      const next = await this.#chunks.next()
      if (next.done === true) return
      yield next.value
    }
  }

  /**
   * Gives the stream back behind the last record that was taken, or is in the sort window. A fill() that runs or begins
   * waits for unpark(), then resumes. Needs the option `resume`.
   */
  park(): void {
    if (this.#ended || this.#isParked) return
    this.#isParked = true
    const hasStream = this.#parked === undefined
    this.#parked = Promise.withResolvers()
    if (!hasStream) return
    this.#forgetStream()
    this.#interrupt?.()
  }

  unpark(): void {
    this.#isParked = false
    this.#parked?.resolve()
  }

  /**
   * Gives the iterator back, in any state, and looks at no bytes any more. Never rejects:
   * whoever made the iterator hears of its failures.
   */
  async close(): Promise<void> {
    this.records.forget()
    if (this.#ended) return
    this.#ended = true
    this.#parked?.resolve()
    const returned = this.#chunks.return?.().catch(() => undefined)
    // A generator that waits for data answers return() only after that wait: its owner ends it.
    if (!this.#pulling) await returned
  }

  /** A record that is not at hand is in order only if it can still be completed. */
  #checkRecord(): void {
    const capturedLength = this.records.impossibleLength
    if (capturedLength === undefined) return
    throw this.#protocolError(
      `a record claims ${capturedLength} captured bytes (at most ${MAX_CAPTURED_LENGTH})`,
    )
  }

  #takeArrived(): Uint8Array | undefined {
    if (this.#ended || this.#parked !== undefined || this.records.impossibleLength !== undefined)
      return undefined
    try {
      return this.#chunks.take?.()
    } catch (error) {
      this.#chunks = failed(error, this.#chunks)
      return undefined
    }
  }

  /** The next chunk; undefined at the end of the input. */
  async #pull(): Promise<Uint8Array | undefined> {
    while (!this.#ended) {
      const parked = this.#parked
      if (parked !== undefined) {
        await parked.promise
        // It may have been parked again before this fill() came to ask for a stream.
        if (this.#parked !== parked) continue
        this.#parked = undefined
        if (!this.#ended) await this.#resume(undefined)
        continue
      }
      const next = await this.#next()
      // When the input was closed during the wait, the chunk is not ours any more.
      if (next === PARKED || this.#ended) continue
      if (next.done !== true) return next.value
      if (this.records.partialBytes > 0) throw this.#protocolError('the stream ended inside a record')
      this.#end()
    }
    return undefined
  }

  /** The stream's next chunk, or PARKED as soon as the input is parked. */
  async #next(): Promise<IteratorResult<Uint8Array> | typeof PARKED> {
    this.#pulling = true
    try {
      return await new Promise((resolve, reject) => {
        this.#interrupt = () => resolve(PARKED)
        this.#chunks.next().then(resolve, reject)
      })
    } finally {
      this.#pulling = false
      this.#interrupt = undefined
    }
  }

  async #resume(cause: unknown): Promise<void> {
    this.#forgetStream()
    try {
      const { resume } = this.#options
      if (resume === undefined) throw cause
      const chunks = await resume(cause, this.records.arrived())
      // When the input was parked or closed meanwhile, the new stream is not wanted any more.
      if (this.#ended || this.#parked !== undefined) giveBack(chunks)
      else if (chunks === undefined) this.#end()
      else this.#chunks = chunks
    } catch (error) {
      this.#ended = true
      throw error
    }
  }

  #end(): void {
    this.#ended = true
    this.records.end()
  }

  /** Gives the stream back; what did not arrive whole, or was not taken, is forgotten. */
  #forgetStream(): void {
    // Nobody may look at the chunk any more, because its memory is used again.
    this.records.breakOff()
    giveBack(this.#chunks)
    this.#chunks = NO_CHUNKS
  }

  #protocolError(what: string): CapfleetError {
    const offset = PCAP_HEADER_BYTES + this.records.arrived().bytes
    return new CapfleetError('device-protocol', `${this.name}: ${what} at offset ${offset} of its PCAP`, {
      members: { devices: [this.name] },
    })
  }
}

const NO_CHUNKS: AsyncIterator<Uint8Array> = {
  next: () => Promise.resolve({ done: true, value: undefined }),
}

/** Stands for a stream that has failed, and repeats its failure to next(). */
function failed(error: unknown, chunks: ChunkStream): ChunkStream {
  return {
    next: () => Promise.reject(error),
    return: async () => (await chunks.return?.()) ?? { done: true, value: undefined },
  }
}

/** Ends a stream; whoever made it hears of its failures. */
function giveBack(chunks: AsyncIterator<Uint8Array> | undefined): void {
  chunks?.return?.().catch(() => undefined)
}
