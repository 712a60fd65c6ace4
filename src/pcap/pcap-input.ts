import { CapfleetError } from '../base/error.ts'
import {
  MAX_CAPTURED_LENGTH,
  PCAP_HEADER_BYTES,
  type PcapHeader,
  parsePcapHeader,
  RECORD_HEADER_BYTES,
} from './pcap-header.ts'

/** What has been taken from one input so far. */
export interface InputTotals {
  readonly name: string
  readonly packets: number
  /** Bytes of those packets as records: 16-byte headers and captured bytes. */
  readonly bytes: number
  /** Timestamp of the first packet, and the latest timestamp; undefined before the first packet. */
  readonly firstNs: bigint | undefined
  readonly lastNs: bigint | undefined
  /** Packets whose timestamp was before one already taken from this input. */
  readonly outOfOrder: number
}

const NO_BYTES = Buffer.alloc(0)
const MOST_RECORD_BYTES = RECORD_HEADER_BYTES + MAX_CAPTURED_LENGTH

/**
 * One PCAP stream as an input of a merge: a window of bytes, and the order key of the record at its
 * front. The key is the running maximum of the input's timestamps, so that a late record goes out
 * at once and never holds up another input. It is two numbers (seconds, and the fraction in the
 * file's unit), because a bigint per record costs more than all the rest.
 *
 * Holds one chunk at a time, and one record while that lies across chunks. A delivered chunk belongs
 * to the merge, which may pass it on: whoever delivered it must not write to it again.
 */
export class PcapInput {
  readonly name: string
  readonly header: PcapHeader
  readonly #chunks: AsyncIterator<Uint8Array>
  readonly #fractionsPerSecond: number

  #window: Buffer = NO_BYTES
  #view = viewOf(NO_BYTES)
  /** Where in the stream the window begins. */
  #windowOffset = PCAP_HEADER_BYTES
  /** The front record in the window; its end and key hold only while there is one. */
  #front = 0
  #frontEnd = 0
  #hasRecord = false
  #frontIsLate = 0
  #keySeconds = 0
  #keyFraction = 0
  /** Bytes that follow the window. */
  #rest: Buffer
  /** Room for one record that lies across chunks; the window is a part of it then. */
  #joint: Buffer = NO_BYTES
  #pulling = false
  #ended = false

  #packets = 0
  #bytes = 0
  #outOfOrder = 0
  #firstNs: bigint | undefined
  #lastSeconds = 0
  #lastFraction = 0

  /**
   * Reads the file header. `name` is the device's, for errors. Throws device-protocol when the
   * stream does not begin with a PCAP header; an error of `chunks` passes through unchanged. Until
   * this returns, `chunks` stays with the caller; afterwards close() gives it back.
   */
  static async open(name: string, chunks: AsyncIterator<Uint8Array>): Promise<PcapInput> {
    let bytes: Buffer = NO_BYTES
    while (bytes.byteLength < PCAP_HEADER_BYTES) {
      const next = await chunks.next()
      if (next.done === true) break
      bytes = bytes.byteLength === 0 ? asBuffer(next.value) : Buffer.concat([bytes, next.value])
    }
    return new PcapInput(name, parsePcapHeader(bytes, name), chunks, bytes.subarray(PCAP_HEADER_BYTES))
  }

  private constructor(name: string, header: PcapHeader, chunks: AsyncIterator<Uint8Array>, rest: Buffer) {
    this.name = name
    this.header = header
    this.#chunks = chunks
    this.#fractionsPerSecond = header.nanoseconds ? 1_000_000_000 : 1_000_000
    this.#rest = rest
  }

  /** Live figures of the records taken by takeRun(). */
  get totals(): InputTotals {
    return {
      name: this.name,
      packets: this.#packets,
      bytes: this.#bytes,
      firstNs: this.#firstNs,
      lastNs: this.#packets === 0 ? undefined : this.#toNs(this.#lastSeconds, this.#lastFraction),
      outOfOrder: this.#outOfOrder,
    }
  }

  /** Whether a whole record stands at the front; if not, call fill(). */
  get hasRecord(): boolean {
    return this.#hasRecord
  }

  /** Order key of the front record: seconds since 1970, and the rest in the file's unit. */
  get keySeconds(): number {
    return this.#keySeconds
  }

  get keyFraction(): number {
    return this.#keyFraction
  }

  get keyNs(): bigint {
    return this.#toNs(this.#keySeconds, this.#keyFraction)
  }

  /**
   * Reads until a whole record stands at the front or the input has ended (`hasRecord` is false
   * then). Asks for a chunk only when the bytes at hand hold no whole record. Throws
   * device-protocol when the input ends inside a record or claims an impossible one.
   */
  async fill(): Promise<void> {
    while (!this.#hasRecord) {
      if (this.#rest.byteLength === 0 && !(await this.#pull())) return
      this.#extendWindow()
      this.#readFront()
      this.#checkFront()
    }
  }

  /** The bytes at hand. Those before `front` are taken; they stay until fill(). */
  get window(): Buffer {
    return this.#window
  }

  /** Where in the window the next record begins. */
  get front(): number {
    return this.#front
  }

  /**
   * Takes the front record, and those after it whose key is below (seconds, fraction), as far as
   * the window goes. Returns how many bytes they have: they lie in the window before `front`, where
   * the next record now stands. When the window holds no further whole one, `hasRecord` is false.
   */
  takeRun(seconds: number, fraction: number): number {
    if (this.#firstNs === undefined) this.#firstNs = this.keyNs
    const view = this.#view
    const start = this.#front
    let front = this.#frontEnd
    let packets = 1
    let lastSeconds = this.#keySeconds
    let lastFraction = this.#keyFraction
    this.#outOfOrder += this.#frontIsLate
    // Only what readFront() would take as it is; all else is left to it.
    while (front + RECORD_HEADER_BYTES <= view.byteLength) {
      const recordSeconds = view.getUint32(front, true)
      const recordFraction = view.getUint32(front + 4, true)
      const end = front + RECORD_HEADER_BYTES + view.getUint32(front + 8, true)
      if (end > view.byteLength || end - front > MOST_RECORD_BYTES) break
      if (recordSeconds > seconds || (recordSeconds === seconds && recordFraction >= fraction)) break
      if (recordSeconds < lastSeconds || (recordSeconds === lastSeconds && recordFraction < lastFraction))
        break
      if (recordFraction >= this.#fractionsPerSecond) break
      lastSeconds = recordSeconds
      lastFraction = recordFraction
      packets++
      front = end
    }
    this.#lastSeconds = this.#keySeconds = lastSeconds
    this.#lastFraction = this.#keyFraction = lastFraction
    this.#packets += packets
    this.#bytes += front - start
    this.#front = front
    this.#readFront()
    return front - start
  }

  /** Gives the iterator back, in any state. Never rejects: whoever made it hears of its failures. */
  async close(): Promise<void> {
    if (this.#ended) return
    this.#ended = true
    const returned = this.#chunks.return?.().catch(() => undefined)
    // A generator that waits for data answers return() only after that wait: its owner ends it.
    if (!this.#pulling) await returned
  }

  /** Looks at the record at #front. Runs once per record: no calls that V8 does not inline. */
  #readFront(): void {
    const position = this.#front
    const view = this.#view
    this.#hasRecord = false
    if (position + RECORD_HEADER_BYTES > view.byteLength) return
    const capturedLength = view.getUint32(position + 8, true)
    const end = position + RECORD_HEADER_BYTES + capturedLength
    if (end > view.byteLength || capturedLength > MAX_CAPTURED_LENGTH) return
    this.#frontEnd = end
    this.#hasRecord = true
    let seconds = view.getUint32(position, true)
    let fraction = view.getUint32(position + 4, true)
    if (fraction >= this.#fractionsPerSecond) {
      // Seen in the wild; it counts as the later instant that it adds up to.
      seconds += Math.floor(fraction / this.#fractionsPerSecond)
      fraction %= this.#fractionsPerSecond
    }
    const isLate =
      seconds < this.#keySeconds || (seconds === this.#keySeconds && fraction < this.#keyFraction)
    this.#frontIsLate = isLate ? 1 : 0
    if (isLate) return
    this.#keySeconds = seconds
    this.#keyFraction = fraction
  }

  /** A window without a record is in order only if its record can still be completed. */
  #checkFront(): void {
    if (this.#hasRecord || this.#view.byteLength - this.#front < RECORD_HEADER_BYTES) return
    const capturedLength = this.#view.getUint32(this.#front + 8, true)
    if (capturedLength <= MAX_CAPTURED_LENGTH) return
    throw this.#protocolError(
      `a record claims ${capturedLength} captured bytes (at most ${MAX_CAPTURED_LENGTH})`,
    )
  }

  /** Fetches a chunk into #rest. False at the end of the input. */
  async #pull(): Promise<boolean> {
    if (this.#ended) return false
    this.#pulling = true
    try {
      const next = await this.#chunks.next()
      if (next.done !== true) {
        this.#rest = asBuffer(next.value)
        return true
      }
    } catch (error) {
      this.#ended = true
      throw error
    } finally {
      this.#pulling = false
    }
    this.#ended = true
    if (this.#front < this.#window.byteLength) throw this.#protocolError('the stream ended inside a record')
    return false
  }

  /** Moves bytes from #rest into the window: all of them, or what completes the partial front record. */
  #extendWindow(): void {
    const partial = this.#window.subarray(this.#front)
    this.#windowOffset += this.#front
    if (partial.byteLength === 0) {
      this.#joint = NO_BYTES
      this.#setWindow(this.#rest)
      this.#rest = NO_BYTES
      return
    }
    const wanted = this.#bytesToJoin(partial.byteLength)
    if (this.#joint.byteLength < wanted) {
      this.#joint = Buffer.allocUnsafe(wanted)
      partial.copy(this.#joint)
    }
    const taken = this.#rest.copy(this.#joint, partial.byteLength, 0, wanted - partial.byteLength)
    this.#rest = this.#rest.subarray(taken)
    this.#setWindow(this.#joint.subarray(0, partial.byteLength + taken))
  }

  /** How many bytes the partial front record needs next: its header, or all of it. */
  #bytesToJoin(presentBytes: number): number {
    if (presentBytes < RECORD_HEADER_BYTES) return RECORD_HEADER_BYTES
    return RECORD_HEADER_BYTES + this.#view.getUint32(this.#front + 8, true)
  }

  #setWindow(window: Buffer): void {
    this.#window = window
    this.#view = viewOf(window)
    this.#front = 0
  }

  #toNs(seconds: number, fraction: number): bigint {
    return BigInt(seconds) * 1_000_000_000n + BigInt(fraction) * (this.header.nanoseconds ? 1n : 1000n)
  }

  #protocolError(what: string): CapfleetError {
    const offset = this.#windowOffset + this.#front
    return new CapfleetError('device-protocol', `${this.name}: ${what} at offset ${offset} of its PCAP`, {
      members: { devices: [this.name] },
    })
  }
}

function viewOf(bytes: Buffer): DataView<ArrayBufferLike> {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
