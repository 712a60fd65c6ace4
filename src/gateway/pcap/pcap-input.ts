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

/** The bytes of a stream as they arrive. A chunk is valid until the next one is requested. */
export interface ChunkStream extends AsyncIterator<Uint8Array> {
  /**
   * Returns the next chunk if it has already arrived, else undefined: then call next(). For many small chunks a
   * promise each costs more than their bytes. Fails like next(); must not be called while a next() is pending.
   */
  take?(): Uint8Array | undefined
}

/** Set for a device that does not guarantee the order of its packets. */
export const SORT_WINDOW: SortWindow = { ns: LATE_NS_MAX, bytes: 4 * 1_048_576 }

/**
 * Called when a stream breaks off (`cause`), or after a pause (undefined). Resolves to the bytes right after what has
 * arrived, without a file header, or to undefined if the input should end here. Everything that has arrived was
 * consumed, or is in the sort window, from which it is consumed later.
 */
export type ResumeInput = (
  cause: unknown,
  arrived: ArrivedRecords,
) => Promise<AsyncIterator<Uint8Array> | undefined>

export interface InputOptions {
  /** Continues the input after a stream broke off. Default: the input fails. */
  readonly resume?: ResumeInput
  /** Subtracted from every timestamp. */
  readonly alignNs?: bigint
  /** Whether to mark the last packets even while they are in order, see ArrivedRecords. */
  readonly marksTail?: boolean
  /** See RecordInputOptions. */
  readonly marksAll?: boolean
  /** The interface of all packets, for a merge in pcapng; 'tagged': each record begins with the tag of its own. */
  readonly interface?: number | 'tagged' | undefined
  /** Whether timestamps stay in the resolution of the stream. Default: records have nanoseconds. */
  readonly keepsResolution?: boolean
  /**
   * Set if packets may be late, and are to be sorted. Default: they are passed on in order of arrival, without a copy
   * or delay.
   */
  readonly sortWindow?: SortWindow | undefined
}

const NO_BYTES = Buffer.alloc(0)
const PARKED = Symbol('parked')

/**
 * One PCAP stream as an input of a merge: its records and the source of more. Holds one chunk of the stream at a time,
 * which it needs until it requests the next.
 */
export class PcapInput {
  readonly name: string
  readonly header: StreamHeader
  readonly records: RecordInput
  /** See InputOptions; set it before the merge begins. */
  interface: number | 'tagged' | undefined
  readonly #options: InputOptions
  #chunks: ChunkStream
  #pulling = false
  #ended = false
  /** Set once park() has returned the stream and while no fill() has requested another: resolved by unpark(). */
  #parked: PromiseWithResolvers<void> | undefined
  #isParked = false
  /** Wakes a wait for the stream when the input is parked. */
  #interrupt: (() => void) | undefined

  /**
   * Reads the file header. `name` is the device's, for errors. Throws device-protocol if the stream does not begin
   * with a PCAP header; an error of `chunks` is thrown unchanged. Until this returns, the caller owns `chunks`;
   * afterwards close() returns it.
   */
  static async open(name: string, chunks: ChunkStream, options: InputOptions = {}): Promise<PcapInput> {
    let bytes: Uint8Array = NO_BYTES
    while (bytes.byteLength < PCAP_HEADER_BYTES) {
      // A chunk becomes invalid when the next one is requested.
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
    this.interface = options.interface
    this.header = parsePcapHeader(stream.header, name)
    this.#options = options
    this.#chunks = stream.chunks
    const { keepsResolution = false, alignNs, marksTail, marksAll, sortWindow } = options
    const { nanoseconds, isBigEndian: bigEndian } = this.header
    const widens = !nanoseconds && !keepsResolution
    const isTagged = options.interface === 'tagged'
    const shown = { nanoseconds, widens, bigEndian, alignNs, isTagged }
    this.records = new RecordInput({ ...shown, marksTail, marksAll, sortWindow })
    this.records.show(stream.header.subarray(PCAP_HEADER_BYTES))
  }

  /** Live counts of the records that were consumed. */
  get figures(): RecordFigures {
    return this.records.figures()
  }

  /** Whether a whole record is available; if not, call fill(). */
  get hasRecord(): boolean {
    return this.records.hasRecord
  }

  /** Whether no more records follow. */
  get ended(): boolean {
    return this.#ended && !this.hasRecord
  }

  /**
   * Reads until a whole record is available or the input has ended (`hasRecord` is then false). Requests a chunk only
   * if the previous one has no whole record left. Throws device-protocol if the input ends inside a record or contains
   * an impossible one.
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
   * Consumes what has arrived, without waiting. Returns whether a whole record is available; if not, fill() reports
   * why. Must not be called while a fill() is pending.
   */
  fillFromArrived(): boolean {
    while (!this.hasRecord) {
      const chunk = this.#takeArrived()
      if (chunk === undefined) return false
      this.records.show(chunk)
    }
    return true
  }

  /** Consumes the next `count` records; resolves to how many there were, and to their hash. Fails like fill(). */
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
   * The bytes that follow the consumed records, to the end of the stream. Replaces fill(). REQUIRES: timestamps stay
   * unchanged.
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
   * Returns the stream after the last record that was consumed, or is in the sort window. A fill() in progress or
   * later waits for unpark(), then resumes. Needs the option `resume`.
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
   * Returns the iterator, in any state, and does not use its bytes any more. Never rejects: the creator of the
   * iterator gets its failures.
   */
  async close(): Promise<void> {
    this.records.forget()
    if (this.#ended) return
    this.#ended = true
    this.#parked?.resolve()
    const returned = this.#chunks.return?.().catch(() => undefined)
    // A generator that waits for data answers return() only after that wait, so its owner must end it.
    if (!this.#pulling) await returned
  }

  /** A record that is not available is in order only if it can still be completed. */
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

  /** The next chunk, or undefined at the end of the input. */
  async #pull(): Promise<Uint8Array | undefined> {
    while (!this.#ended) {
      const parked = this.#parked
      if (parked !== undefined) {
        await parked.promise
        // It may have been parked again before this fill() got to request a stream.
        if (this.#parked !== parked) continue
        this.#parked = undefined
        if (!this.#ended) await this.#resume(undefined)
        continue
      }
      const next = await this.#next()
      // If the input was closed during the wait, the chunk does not belong to us any more.
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
      // If the input was parked or closed meanwhile, the new stream is not needed any more.
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

  /** Returns the stream; incomplete and unconsumed records are discarded. */
  #forgetStream(): void {
    // The chunk must not be used any more, because its memory is reused.
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

/** Replaces a stream that has failed, and repeats its failure from next(). */
function failed(error: unknown, chunks: ChunkStream): ChunkStream {
  return {
    next: () => Promise.reject(error),
    return: async () => (await chunks.return?.()) ?? { done: true, value: undefined },
  }
}

/** Ends a stream; its creator gets its failures. */
function giveBack(chunks: AsyncIterator<Uint8Array> | undefined): void {
  chunks?.return?.().catch(() => undefined)
}
