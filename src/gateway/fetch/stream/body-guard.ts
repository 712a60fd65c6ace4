/**
 * Distinguishes a complete body from one that merely ended: a device that announces no completion trailer may end its
 * answer in good form anywhere.
 */
import { parsePcapHeader } from '../../../shared/pcap/pcap-header.ts'
import { PCAP_HEADER_BYTES } from '../../../shared/pcap/pcap-sizes.ts'
import { PcapngBoundary } from '../../../shared/pcap/pcapng-boundary.ts'
import { RecordBoundary } from '../../../shared/pcap/record-boundary.ts'
import type { CompressedEncoding } from '../../../shared/query/download/query-values.ts'
import { deviceProtocol } from '../../device/device-failure.ts'
import { decode } from '../encoding/decode.ts'

/** Where in a body an element begins: a record, or a block of pcapng. */
export interface ElementPlace {
  /** Distance from the bytes that are fed next. */
  readonly offset: number
  /** For pcapng: bytes that the file header has there, see PcapngBoundary. */
  readonly headerBytes?: number
}

/** Follows the elements of a body that is not compressed. */
interface FollowingGuard extends BodyGuard {
  /** Where the next element begins; undefined if that is not known yet, or of no use. */
  readonly nextElement: ElementPlace | undefined
  /** Bytes up to the end of the last complete element. */
  readonly wholeBytes: number
}

export interface BodyGuard extends Disposable {
  /**
   * Whether the bytes so far, without those that feed() rejected, may end between two elements of the format, so that
   * a cut there would not be visible in the file.
   */
  readonly mayBeWhole: boolean
  /** Whether feed() must be awaited. */
  readonly takesTime: boolean
  /** Checks the next bytes, which must not change meanwhile. Throws device-protocol. */
  feed(pieces: readonly Buffer[]): Promise<void> | undefined
  /** Called at the end of the body. Throws device-protocol if it is not a complete file. */
  finish(): Promise<void>
}

/** The guard of a body whose completion the device itself confirms. */
export const UNCHECKED_BODY: BodyGuard = {
  mayBeWhole: true,
  takesTime: false,
  feed: () => undefined,
  finish: () => Promise.resolve(),
  [Symbol.dispose]: () => undefined,
}

/** A PCAP is complete if it ends after a record. */
export class PcapGuard implements FollowingGuard {
  readonly takesTime = false
  readonly boundary: RecordBoundary
  readonly #device: string

  constructor(device: string, options: { readonly padding: 'end' | 'fault' | undefined }) {
    this.#device = device
    this.boundary = new RecordBoundary(`device ${device}`, options)
  }

  get mayBeWhole(): boolean {
    return this.boundary.atBoundary
  }

  get nextElement(): ElementPlace | undefined {
    const { bytesToNextRecord: offset } = this.boundary
    return offset === undefined ? undefined : { offset }
  }

  get wholeBytes(): number {
    return this.boundary.wholeBytes
  }

  feed(pieces: readonly Buffer[]): undefined {
    this.boundary.feed(pieces)
  }

  async finish(): Promise<void> {
    if (!this.mayBeWhole) throw endedInsideRecord(this.#device)
  }

  [Symbol.dispose](): void {}
}

/** A longer header would make a receipt too large; such a body is continued from its first byte. */
const HEADER_BYTES_MAX = 32_768

/** A pcapng is complete if it ends after a block, and its device confirms it. */
export class PcapngGuard implements FollowingGuard {
  readonly takesTime = false
  readonly #boundary: PcapngBoundary
  readonly #device: string

  constructor(device: string) {
    this.#device = device
    this.#boundary = new PcapngBoundary(`device ${device}`, { headerBytesMax: HEADER_BYTES_MAX })
  }

  get mayBeWhole(): boolean {
    return this.#boundary.atBoundary
  }

  get nextElement(): ElementPlace | undefined {
    const { bytesToNextBlock: offset, headerBytesAtNextBlock: headerBytes } = this.#boundary
    return offset === undefined || headerBytes === undefined ? undefined : { offset, headerBytes }
  }

  get wholeBytes(): number {
    return this.#boundary.wholeBytes
  }

  /** The file header so far; undefined if it is too long to be kept. */
  get header(): Buffer | undefined {
    return this.#boundary.header
  }

  feed(pieces: readonly Buffer[]): undefined {
    this.#boundary.feed(pieces)
  }

  async finish(): Promise<void> {
    if (!this.mayBeWhole) throw deviceProtocol(this.#device, 'ended its stream inside a block of pcapng')
  }

  [Symbol.dispose](): void {}
}

/**
 * A compressed PCAP is complete if the last gzip member or zstd frame is, and its contents end after a record.
 * Decompresses everything and keeps nothing.
 */
export class CompressedGuard implements BodyGuard {
  /** Only finish() can tell, because only it has seen all decompressed bytes. */
  readonly mayBeWhole = true
  readonly takesTime = true
  readonly #device: string
  readonly #boundary: RecordBoundary
  readonly #input = new Handover()
  /** Settles when everything decoded has been checked. */
  readonly #judged: Promise<void>

  constructor(
    device: string,
    encoding: CompressedEncoding,
    options: { readonly padding: 'end' | 'fault' | undefined },
  ) {
    this.#device = device
    this.#boundary = new RecordBoundary(`device ${device}`, options)
    this.#judged = this.#judge(encoding)
    // feed() and finish() report a failure. If the guard is abandoned, the failure is not needed.
    this.#judged.catch(() => undefined)
  }

  async feed(pieces: readonly Buffer[]): Promise<void> {
    for (const piece of pieces) await Promise.race([this.#input.give(piece), this.#judged])
  }

  async finish(): Promise<void> {
    this.#input.end()
    await this.#judged
    if (!this.#boundary.atBoundary) throw endedInsideRecord(this.#device)
  }

  /** The decoder ends with its input. */
  [Symbol.dispose](): void {
    this.#input.end()
  }

  async #judge(encoding: CompressedEncoding): Promise<void> {
    const decoded = decode({ device: this.#device, encoding, chunks: this.#input })
    let head: Buffer | undefined = Buffer.alloc(0)
    for await (const chunk of decoded) {
      if (head !== undefined) {
        head = Buffer.concat([head, chunk.subarray(0, PCAP_HEADER_BYTES - head.length)])
        if (head.length === PCAP_HEADER_BYTES) {
          parsePcapHeader(head, `device ${this.#device}`)
          head = undefined
        }
      }
      this.#boundary.feed([chunk])
    }
  }
}

function endedInsideRecord(device: string) {
  return deviceProtocol(device, 'ended its stream inside a record')
}

/** Passes pieces to a reader that requests one after the other. */
class Handover implements AsyncIterator<Buffer> {
  #next = Promise.withResolvers<IteratorResult<Buffer, undefined>>()
  /** Called when the reader requests the next piece. */
  #used: (() => void) | undefined
  #isEnded = false

  /** Resolves when the piece is used up. Must not be called before the previous one has resolved. */
  give(value: Buffer): Promise<void> {
    const used = Promise.withResolvers<void>()
    this.#used = used.resolve
    this.#next.resolve({ done: false, value })
    return used.promise
  }

  /** Signals that no piece follows. */
  end(): void {
    this.#isEnded = true
    this.#next.resolve({ done: true, value: undefined })
  }

  next(): Promise<IteratorResult<Buffer, undefined>> {
    if (this.#used !== undefined) {
      this.#used()
      this.#used = undefined
      this.#next = Promise.withResolvers()
      if (this.#isEnded) this.end()
    }
    return this.#next.promise
  }
}
