/**
 * The body of one device's answer, checked while it is read. It is either pushed to a relay (pour) or pulled by a
 * merge piece by piece (take, next), not both.
 */
import { type Encoding, isCompressed, PARTIAL_ELEMENTS } from '../../../shared/query/download/query-values.ts'
import { framedAfter, NO_OPEN_CHUNK } from '../../device/body-framing.ts'
import { deviceProtocol } from '../../device/device-failure.ts'
import { kindOfAnswer } from '../../device/device-kind.ts'
import type { BodyRead, DeviceStream } from '../../device/device-stream.ts'
import type { ChunkStream } from '../../pcap/pcap-input.ts'
import { type DeviceEnd, readEnd } from '../proof/device-claims.ts'
import {
  type BodyGuard,
  CompressedGuard,
  type ElementPlace,
  PcapGuard,
  PcapngGuard,
  UNCHECKED_BODY,
} from './body-guard.ts'

const NOTHING = new Uint8Array(0)
const DONE = { done: true, value: undefined } as const

/** The members of a device's answer that are needed to read its body. */
export type BodyStream = Pick<DeviceStream, 'head' | 'trailers' | 'take' | 'next' | 'pour' | 'confirmEnd'> &
  Disposable

export interface SourceBodyOptions {
  readonly device: string
  readonly encoding: Encoding
  /** Parts that were read already. */
  readonly first: readonly BodyRead[]
  /** Whether to follow the records even if the device confirms its end, so that cutMark() is exact. */
  readonly isRelayed: boolean
}

export class SourceBody implements ChunkStream, AsyncIterableIterator<Buffer>, Disposable {
  readonly #stream: BodyStream
  readonly #device: string
  readonly #encoding: Encoding
  readonly #announcesCompletion: boolean
  readonly #guard: BodyGuard
  readonly #first: BodyRead[]
  /** For take() and next(): the read whose pieces are being returned, and how many have been. */
  #read: BodyRead | undefined
  #given = 0
  /** Whether the body was read to its end and found complete. */
  #isWhole = false
  /** For take() and next(): whether the body has ended or was returned. */
  #isEnded = false
  #nextElement: ElementPlace | undefined

  constructor(stream: BodyStream, options: SourceBodyOptions) {
    this.#stream = stream
    this.#device = options.device
    this.#encoding = options.encoding
    this.#first = [...options.first]
    this.#announcesCompletion = announcesCompletion(stream)
    this.#guard = this.#chooseGuard(options.isRelayed)
  }

  /**
   * Passes every part to `sink` as it arrives; resolves when the body is complete. Fails with device-unreachable,
   * device-timeout, device-protocol or the signal's reason, and with what the sink throws. REQUIRES: parts are
   * released in time (device-stream.ts).
   */
  async pour(sink: (read: BodyRead) => void): Promise<void> {
    if (this.#guard.takesTime) {
      for (let read = await this.#nextRead(); read !== undefined; read = await this.#nextRead()) sink(read)
      return
    }
    const pass = (read: BodyRead): void => {
      const data = this.#judge(read, read.data)
      if (data === read.data) sink(read)
      else if (data.length > 0) sink(unpadded(read, data))
      else read.release()
    }
    for (let read = this.#first.shift(); read !== undefined; read = this.#first.shift()) pass(read)
    await this.#stream.pour(pass)
    await this.#confirmEnd()
  }

  /** Returns the next piece if it has already arrived, else undefined: then call next(). Fails like next(). */
  take(): Buffer | undefined {
    while (!this.#isEnded) {
      const piece = this.#read?.data[this.#given]
      this.#given += 1
      if (this.#read !== undefined && piece !== undefined) {
        const kept = this.#guard.takesTime ? [piece] : this.#judge(this.#read, [piece])
        if (kept.length > 0) return kept.length === 1 ? kept[0] : Buffer.concat(kept)
        continue
      }
      this.#release()
      if (!this.#guard.takesTime) this.#read = this.#first.shift() ?? this.#stream.take()
      if (this.#read === undefined) return undefined
    }
    return undefined
  }

  /** The next piece, valid until the following one is requested; done when the body is complete. Fails like pour(). */
  async next(): Promise<IteratorResult<Buffer, undefined>> {
    for (;;) {
      const piece = this.take()
      if (piece !== undefined) return { done: false, value: piece }
      if (this.#isEnded) return DONE
      const read = await this.#nextRead()
      if (read === undefined) this.#isEnded = true
      this.#read = read
      // The body may have been returned during the wait.
      if (this.#isEnded) this.#release()
    }
  }

  /** Releases the memory; the owner still has to end the stream. */
  return(): Promise<IteratorResult<Buffer, undefined>> {
    this.#isEnded = true
    this.#release()
    return Promise.resolve(DONE)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /**
   * Bytes that, appended to all data so far, leave the format inside an element, so that the cut is visible in the
   * file itself. Empty if it is inside one already.
   */
  cutMark(): Uint8Array {
    return this.#guard.mayBeWhole ? PARTIAL_ELEMENTS[this.#encoding] : NOTHING
  }

  /**
   * What the device stated, and whether that is reliable. A body that was not read to its end has nothing to verify.
   */
  get end(): DeviceEnd {
    const end = readEnd(this.#stream.trailers)
    // A device that crashes, or a proxy that gives up, closes the connection too.
    const isOpenEnded =
      this.#isWhole && this.#stream.head.framing === 'until-close' && !this.#announcesCompletion
    return { ...end, isUnverified: end.isUnverified || (isOpenEnded && this.#encoding === 'none') }
  }

  /** Where an element begins in the read or piece returned last, or how far after it one begins; undefined if unknown. */
  get nextElement(): ElementPlace | undefined {
    return this.#nextElement
  }

  /** Returned bytes up to the end of the last complete element, or undefined if unknown. */
  get wholeBytes(): number | undefined {
    return isFollowing(this.#guard) ? this.#guard.wholeBytes : undefined
  }

  /** Of pcapng that is relayed: its header as far as it was returned, unless that is too long to be kept. */
  get pcapngHeader(): Buffer | undefined {
    return this.#guard instanceof PcapngGuard ? this.#guard.header : undefined
  }

  [Symbol.dispose](): void {
    this.#stream[Symbol.dispose]()
    this.#guard[Symbol.dispose]()
    for (const read of this.#first.splice(0)) read.release()
  }

  #release(): void {
    this.#read?.release()
    this.#read = undefined
    this.#given = 0
  }

  /** The next read, already checked where that takes time, or undefined when the body is complete. */
  async #nextRead(): Promise<BodyRead | undefined> {
    const read = this.#first.shift() ?? (await this.#stream.next())
    if (read === undefined) {
      await this.#confirmEnd()
      return undefined
    }
    if (!this.#guard.takesTime) return read
    try {
      await this.#guard.feed(read.data)
    } catch (error) {
      read.release()
      throw error
    }
    return read
  }

  /**
   * Checks pieces of the read before they are returned; returns them without padding, preceded by zeros that were held
   * back. REQUIRES: the guard takes no time.
   */
  #judge(read: BodyRead, pieces: readonly Buffer[]): readonly Buffer[] {
    const boundary = this.#guard instanceof PcapGuard ? this.#guard.boundary : undefined
    this.#nextElement = isFollowing(this.#guard) ? this.#guard.nextElement : undefined
    try {
      if (boundary !== undefined) return boundary.pass(pieces)
      void this.#guard.feed(pieces)
      return pieces
    } catch (error) {
      read.release()
      this.#read = undefined
      throw error
    }
  }

  async #confirmEnd(): Promise<void> {
    if (this.#announcesCompletion && !isWhole(this.#stream.trailers)) {
      throw deviceProtocol(
        this.#device,
        'ended its stream without the completion trailer: the stream was cut off',
      )
    }
    await this.#guard.finish()
    if (!this.#announcesCompletion) await this.#stream.confirmEnd()
    this.#isWhole = true
  }

  /** capfleet devices do not pad. Neither a chunk that was passed on nor compressed data can be shortened. */
  #paddingOf(isRelayed: boolean): 'end' | 'fault' | undefined {
    const { headers, framing } = this.#stream.head
    if (kindOfAnswer(headers) !== 'api') return undefined
    return isRelayed && (framing === 'chunked' || this.#encoding !== 'none') ? 'fault' : 'end'
  }

  #chooseGuard(isRelayed: boolean): BodyGuard {
    const padding = this.#paddingOf(isRelayed)
    if (this.#encoding === 'none' && (isRelayed || !this.#announcesCompletion))
      return new PcapGuard(this.#device, { padding })
    if (this.#encoding === 'pcapng' && isRelayed) return new PcapngGuard(this.#device)
    if (!isCompressed(this.#encoding) || this.#announcesCompletion) return UNCHECKED_BODY
    return new CompressedGuard(this.#device, this.#encoding, { padding })
  }
}

function isFollowing(guard: BodyGuard): guard is PcapGuard | PcapngGuard {
  return guard instanceof PcapGuard || guard instanceof PcapngGuard
}

/**
 * Whether the device delivered everything it has: it states how much damaged data it left out, and a gateway states
 * that it could not verify the end.
 */
function isWhole(trailers: BodyStream['trailers']): boolean {
  const { 'capfleet-complete': complete } = trailers
  const { corruptBlocks = 0n, isUnverified } = readEnd(trailers)
  return complete === '1' || (complete === '0' && (corruptBlocks > 0n || isUnverified))
}

/** The read, with `data` as the part that is not padding. REQUIRES: the body is not chunked. */
function unpadded(read: BodyRead, data: readonly Buffer[]): BodyRead {
  const { framed } = framedAfter(NO_OPEN_CHUNK, data)
  return { ...read, data, framed: framed as Buffer[] }
}

/** Our appliance ends a complete stream with a trailer; a proxy in between may drop its announcement. */
export function announcesCompletion({ head }: Pick<BodyStream, 'head'>): boolean {
  const names = (head.headers.trailer ?? '').toLowerCase().split(',')
  return names.some((name) => name.trim() === 'capfleet-complete')
}
