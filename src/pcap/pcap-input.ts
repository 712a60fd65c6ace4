import { CapfleetError } from '../base/error.ts'
import { alignRecords } from './align-records.ts'
import { DeliveredRecords, type InputTotals } from './delivered-records.ts'
import type { InputOptions } from './input-options.ts'
import { type MergeArena, SLOT_BYTES } from './merge-arena.ts'
import {
  MAX_CAPTURED_LENGTH,
  PCAP_HEADER_BYTES,
  type PcapHeader,
  parsePcapHeader,
  RECORD_HEADER_BYTES,
} from './pcap-header.ts'
import { RecordWindow } from './record-window.ts'

const NO_BYTES = Buffer.alloc(0)
const PARKED = Symbol('parked')

/**
 * One PCAP stream as an input of a merge: whole records in a window. Holds one chunk of the stream
 * at a time, which it needs until it asks for the next, and the part of it that is at hand.
 */
export class PcapInput {
  readonly name: string
  readonly header: PcapHeader
  readonly window: RecordWindow
  readonly #options: InputOptions
  readonly #delivered: DeliveredRecords
  #chunks: AsyncIterator<Uint8Array>
  /** Where in the stream the window begins. */
  #windowOffset = PCAP_HEADER_BYTES
  /** Up to this position in its index the window's records are in #delivered. */
  #counted = 0
  /** Bytes of the present chunk that follow the window. */
  #rest: Buffer
  /** Room for the window. */
  readonly #slot: Buffer
  #pulling = false
  #ended = false
  #parked: PromiseWithResolvers<void> | undefined
  /** Wakes a wait for the stream when the input is parked. */
  #interrupt: (() => void) | undefined

  /**
   * Reads the file header. `name` is the device's, for errors. Throws device-protocol when the
   * stream does not begin with a PCAP header; an error of `chunks` passes through unchanged. Until
   * this returns, `chunks` stays with the caller; afterwards close() gives it back.
   */
  static async open(
    name: string,
    chunks: AsyncIterator<Uint8Array>,
    options: InputOptions = {},
  ): Promise<PcapInput> {
    let bytes: Buffer = NO_BYTES
    while (bytes.byteLength < PCAP_HEADER_BYTES) {
      // A chunk is not valid any more when the next one is asked for.
      const before = Buffer.from(bytes)
      const next = await chunks.next()
      if (next.done === true) break
      bytes = before.byteLength === 0 ? asBuffer(next.value) : Buffer.concat([before, next.value])
    }
    return new PcapInput(name, { header: bytes, chunks }, options)
  }

  private constructor(
    name: string,
    stream: { readonly header: Buffer; readonly chunks: AsyncIterator<Uint8Array> },
    options: InputOptions,
  ) {
    this.name = name
    this.header = parsePcapHeader(stream.header, name)
    this.#options = options
    this.#slot = options.arena?.takeSlot() ?? Buffer.allocUnsafeSlow(SLOT_BYTES)
    this.#chunks = stream.chunks
    this.#rest = stream.header.subarray(PCAP_HEADER_BYTES)
    const { nanoseconds } = this.header
    this.window = new RecordWindow(nanoseconds)
    this.#delivered = new DeliveredRecords({ nanoseconds, marksTail: options.marksTail ?? false })
  }

  /** Live figures of the records taken from the window. */
  get totals(): InputTotals {
    this.#count()
    return this.#delivered.totals(this.name)
  }

  get arena(): MergeArena | undefined {
    return this.#options.arena
  }

  /** Whether a whole record stands at the front; if not, call fill(). */
  get hasRecord(): boolean {
    return this.window.frontEnd !== 0
  }

  /** Nothing comes any more. */
  get ended(): boolean {
    return this.#ended && !this.hasRecord
  }

  get parked(): boolean {
    return this.#parked !== undefined
  }

  /**
   * Reads until a whole record stands at the front or the input has ended (`hasRecord` is false
   * then). Asks for a chunk only when the bytes at hand hold no whole record. Throws
   * device-protocol when the input ends inside a record or claims an impossible one.
   */
  async fill(): Promise<void> {
    while (!this.hasRecord) {
      try {
        this.#checkFront()
        if (this.#rest.byteLength === 0 && !(await this.#pull())) return
        this.#extendWindow()
      } catch (error) {
        if (this.#ended) throw error
        await this.#resume(error)
      }
    }
  }

  /** As fill(), with the bytes at hand alone: true if they hold a whole record that was not shown yet. */
  fillAtOnce(): boolean {
    if (this.#rest.byteLength > 0) this.#extendWindow()
    return this.hasRecord
  }

  /** The bytes that follow the taken records, to the end of the stream. Takes the place of fill(). */
  async *remaining(): AsyncGenerator<Buffer, void> {
    const { window } = this
    if (window.front < window.bytes.byteLength) yield window.bytes.subarray(window.front)
    if (this.#rest.byteLength > 0) yield this.#rest
    for (;;) {
      const next = await this.#chunks.next()
      if (next.done === true) return
      yield asBuffer(next.value)
    }
  }

  /**
   * Gives the stream back behind the last taken record. A fill() that runs or begins waits for
   * unpark(), then resumes. Needs the option `resume`.
   */
  park(): void {
    if (this.#ended || this.#parked !== undefined) return
    this.#parked = Promise.withResolvers()
    this.#forgetStream()
    this.#interrupt?.()
  }

  unpark(): void {
    this.#parked?.resolve()
  }

  /** Gives the iterator back, in any state. Never rejects: whoever made it hears of its failures. */
  async close(): Promise<void> {
    if (this.#ended) return
    this.#ended = true
    this.#parked?.resolve()
    const returned = this.#chunks.return?.().catch(() => undefined)
    // A generator that waits for data answers return() only after that wait: its owner ends it.
    if (!this.#pulling) await returned
  }

  /** A window without a record is in order only if its record can still be completed. */
  #checkFront(): void {
    const { view, front } = this.window
    if (this.hasRecord || view.byteLength - front < RECORD_HEADER_BYTES) return
    const capturedLength = view.getUint32(front + 8, true)
    if (capturedLength <= MAX_CAPTURED_LENGTH) return
    throw this.#protocolError(
      `a record claims ${capturedLength} captured bytes (at most ${MAX_CAPTURED_LENGTH})`,
    )
  }

  /** Fetches a chunk into #rest. False at the end of the input. */
  async #pull(): Promise<boolean> {
    while (!this.#ended) {
      if (this.#parked !== undefined) {
        await this.#parked.promise
        this.#parked = undefined
        if (!this.#ended) await this.#resume(undefined)
        continue
      }
      const next = await this.#next()
      if (next === PARKED) continue
      if (next.done !== true) {
        this.#rest = asBuffer(next.value)
        return true
      }
      if (this.window.front < this.window.bytes.byteLength) {
        throw this.#protocolError('the stream ended inside a record')
      }
      this.#ended = true
    }
    return false
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
      const chunks = await resume(cause, this.#delivered)
      // Parked or closed while the stream was opened: it is not wanted any more.
      if (this.#ended || this.#parked !== undefined) giveBack(chunks)
      else if (chunks === undefined) this.#ended = true
      else this.#chunks = chunks
    } catch (error) {
      this.#ended = true
      throw error
    }
  }

  /** Gives the stream back; what was not taken of it is forgotten. */
  #forgetStream(): void {
    giveBack(this.#chunks)
    this.#chunks = NO_CHUNKS
    this.#show(NO_BYTES)
    this.#rest = NO_BYTES
  }

  /** Moves bytes from #rest behind the partial front record, which begins the window then. */
  #extendWindow(): void {
    const { bytes, front } = this.window
    const present = bytes.subarray(front)
    this.#count()
    const wanted = this.#bytesToJoin(present.byteLength)
    // A record that is larger than the slot gets room of its own.
    const room = wanted > this.#slot.byteLength ? Buffer.allocUnsafeSlow(wanted) : this.#slot
    room.set(present)
    const taken = this.#rest.copy(room, present.byteLength)
    const atHand = present.byteLength + taken
    this.#show(room.subarray(0, atHand))
    const surplus = atHand - this.window.bytes.byteLength
    this.#rest = this.#rest.subarray(taken - surplus)
  }

  /** How many bytes the partial front record needs next: its header, or all of it. */
  #bytesToJoin(presentBytes: number): number {
    if (presentBytes < RECORD_HEADER_BYTES) return RECORD_HEADER_BYTES
    const capturedLength = this.window.view.getUint32(this.window.front + 8, true)
    return RECORD_HEADER_BYTES + Math.min(capturedLength, MAX_CAPTURED_LENGTH)
  }

  /** Puts `bytes` in the place of the window, whose taken records are counted before. */
  #show(bytes: Buffer): void {
    this.#count()
    this.#windowOffset += this.window.front
    this.#counted = 0
    const { alignNs } = this.#options
    if (alignNs !== undefined) alignRecords(bytes, alignNs, this.header.nanoseconds)
    this.window.show(bytes)
  }

  #count(): void {
    const { indexFront } = this.window
    if (indexFront > this.#counted) this.#delivered.add(this.window, this.#counted)
    this.#counted = indexFront
  }

  #protocolError(what: string): CapfleetError {
    const offset = this.#windowOffset + this.window.front
    return new CapfleetError('device-protocol', `${this.name}: ${what} at offset ${offset} of its PCAP`, {
      members: { devices: [this.name] },
    })
  }
}

const NO_CHUNKS: AsyncIterator<Uint8Array> = {
  next: () => Promise.resolve({ done: true, value: undefined }),
}

/** Whoever made it hears of its failures. */
function giveBack(chunks: AsyncIterator<Uint8Array> | undefined): void {
  chunks?.return?.().catch(() => undefined)
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
