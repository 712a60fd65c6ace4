/** The body of a download from one device, byte for byte as the device sends it. */
import { addAbortListener } from 'node:events'
import { type Encoding, isCompressed } from '../../../shared/query/download/query-values.ts'
import { isForeign } from '../../device/device-kind.ts'
import type { BodyRead } from '../../device/device-stream.ts'
import type { DownloadPlan, DownloadStep } from '../../fleet/plan/plan.ts'
import { isOrdered, NO_END, readClaims, statusOfEnd } from '../proof/device-claims.ts'
import type { ElementPlace } from '../stream/body-guard.ts'
import type { ReopenStep } from '../stream/leased-streams.ts'
import type { Source } from '../stream/source.ts'
import type { Body, BodyFacts, BodyPart, BodyResult } from './body.ts'
import { continueFrom, type Rest } from './continue-from.ts'
import { type BodyPlaces, PositionLog } from './position.ts'

export interface RelayRequest {
  /** A plan of one step. */
  readonly plan: DownloadPlan
  /** Opened with `isRelayed`; its body must be unread. */
  readonly source: Source
  /** Offset in a larger body at which the source begins, after its header; 0: the source is the whole body. */
  readonly startBytes: number
  /** Bytes of the source's own header, which is not part of the larger body there. */
  readonly headerBytes: number
  /** Aborts the relay; while the body is parked, it ends its wait. */
  readonly signal: AbortSignal
}

const PARKED = new Error('the download is parked')
const NOTHING = new Uint8Array(0)

export class RelayedBody implements Body {
  readonly encoding: Encoding
  readonly facts: BodyFacts
  /**
   * False if the body cannot be reproduced. A device need not compress the same packets into the same bytes again; a
   * followed stream has its packets in another order when requested as history; and a device that does not support
   * After= would send all of it again.
   */
  readonly isParkable: boolean
  readonly #plan: DownloadPlan
  readonly #signal: AbortSignal
  #source: Source
  /** Offset in the whole body at which the source began, including its header. */
  #sourceFrom: number
  /** After the download was parked: selects the part of the source that follows what was returned. */
  #rest: Rest | undefined
  /** The cut mark after what was returned, until the rest begins. */
  #markBefore: Uint8Array = NOTHING
  #wholeBytesBefore = 0
  #headerBefore: Uint8Array = NOTHING
  /** The positions so far; undefined for a compressed body, which cannot be continued. */
  readonly #log: PositionLog | undefined
  /** Remaining bytes of a header of the source's own, which is not part of the whole body. */
  #headerBytesLeft = 0
  #bytes = 0
  #isWhole = false
  /** While the download is parked: resolves to the function that opens its stream again. */
  #parked: PromiseWithResolvers<ReopenStep> | undefined
  /** Aborts the opening of a stream when the body is parked again. */
  #park = new AbortController()

  constructor({ plan, source, startBytes, headerBytes, signal }: RelayRequest) {
    const { encoding, headers } = source
    this.encoding = encoding
    this.facts = { claims: readClaims(headers), clocks: new Map(), missing: [] }
    const knowsAfter = plan.steps.every(({ deviceKind }) => !isForeign(deviceKind))
    this.isParkable = !isCompressed(encoding) && !plan.query.follow && knowsAfter
    this.#plan = plan
    this.#signal = signal
    this.#source = source
    this.#sourceFrom = startBytes - headerBytes
    this.#headerBytesLeft = headerBytes
    if (!isCompressed(encoding)) this.#log = new PositionLog(startBytes)
  }

  get chunks(): AsyncIterable<Uint8Array> {
    return this.#pull()
  }

  async pour(sink: (part: BodyPart) => void): Promise<void> {
    for (;;) {
      try {
        await this.#source.body.pour((read) => this.#pass(read, sink))
        break
      } catch (error) {
        await this.#goOn(this.#rest?.meaningOf(error) ?? error)
      }
    }
    this.#rest?.end()
    this.#isWhole = true
  }

  cutMark(): Uint8Array {
    return this.#rest?.hasBegun === false ? this.#markBefore : this.#source.body.cutMark()
  }

  result(): BodyResult {
    const { device, body } = this.#source
    // Only the device knows how many packets there are.
    const end = this.#isWhole ? body.end : NO_END
    const bytes = BigInt(this.#bytes)
    return {
      ...end,
      bytes,
      perDevice: [
        {
          device,
          status: statusOfEnd(end),
          packets: end.packets,
          bytes,
          firstNs: undefined,
          lastNs: undefined,
          corruptBlocks: end.corruptBlocks,
          retries: 0,
          outOfOrder: 0,
          isOrdered: isOrdered(this.#plan.query, this.facts.claims),
          stalledMs: 0,
          clock: undefined,
          missing: undefined,
          error: undefined,
        },
      ],
    }
  }

  places(): BodyPlaces | undefined {
    return this.#log?.places(this.#header, this.#wholeBytes)
  }

  park(): void {
    const parked = Promise.withResolvers<ReopenStep>()
    // The promise may be rejected before anything waits for it.
    parked.promise.catch(() => undefined)
    addAbortListener(this.#signal, () => parked.reject(this.#signal.reason))
    this.#parked = parked
    this.#park.abort(PARKED)
    this.#source[Symbol.dispose]()
  }

  unpark(reopen: ReopenStep): void {
    this.#park = new AbortController()
    this.#parked?.resolve(reopen)
  }

  [Symbol.dispose](): void {
    this.#source[Symbol.dispose]()
  }

  get #wholeBytes(): number {
    if (this.#rest?.hasBegun === false) return this.#wholeBytesBefore
    return this.#sourceFrom + (this.#source.body.wholeBytes ?? 0)
  }

  /** The header of the body, as far as it has arrived. */
  get #header(): Uint8Array {
    if (this.#rest?.hasBegun === false) return this.#headerBefore
    return this.#source.body.pcapngHeader ?? this.#source.header
  }

  async *#pull(): AsyncGenerator<Uint8Array> {
    const { body } = this.#source
    for await (const chunk of body) {
      this.#follow([chunk], body.nextElement)
      // The source reuses its buffer at once, but a body's chunks must live longer.
      yield Buffer.from(chunk)
    }
    this.#isWhole = true
  }

  #pass(read: BodyRead, sink: (part: BodyPart) => void): void {
    const { data, framed, open, release } = read
    const rest = this.#rest
    const { nextElement } = this.#source.body
    if (rest === undefined) {
      this.#follow(data, nextElement)
      sink({ data, release, framing: { framed, open } })
      return
    }
    const isAllMissing = rest.hasBegun
    try {
      const missing = data.map((piece) => rest.take(piece)).filter((piece) => piece.length > 0)
      this.#follow(missing, isAllMissing ? nextElement : undefined)
      sink({ data: missing, release })
    } catch (error) {
      release()
      throw error
    }
  }

  /** Waits until the body is unparked and has a stream again. Throws `failure` if it is not parked. */
  async #goOn(failure: unknown): Promise<void> {
    const parked = this.#parked
    if (parked === undefined) throw failure
    const reopen = await parked.promise
    try {
      if (this.#parked === parked) {
        this.#parked = undefined
        await this.#openAgain(reopen)
      }
    } catch (error) {
      await this.#goOn(error)
    }
  }

  /** Opens the device's stream again, close to where the body stopped. */
  async #openAgain(reopen: ReopenStep): Promise<void> {
    const delivered = { bytes: this.#log?.bytes ?? 0, places: this.places() }
    this.#markBefore = this.cutMark()
    this.#wholeBytesBefore = this.#wholeBytes
    this.#headerBefore = this.#header
    const { plan, startBytes, headerBytes, rest } = continueFrom(this.#plan, delivered)
    const [step] = plan.steps
    const signal = AbortSignal.any([this.#signal, this.#park.signal])
    this.#source = await reopen(step as DownloadStep, signal)
    this.#sourceFrom = startBytes - headerBytes
    this.#rest = rest
  }

  /** Records the next bytes that are returned; `element` as in SourceBody. */
  #follow(pieces: readonly Buffer[], element: ElementPlace | undefined): void {
    const log = this.#log
    const { headerBytes } = element ?? {}
    let offset = element?.offset ?? Infinity
    for (const piece of pieces) {
      // The body cannot be resumed inside a header.
      const isAfterHeader = this.#headerBytesLeft === 0 && this.#bytes + offset > 0
      const isPlace = offset >= 0 && offset < piece.length && isAfterHeader
      if (log?.isDue && isPlace && !this.#plan.query.follow)
        log.mark(piece, { offset, fromNs: null, headerBytes })
      offset -= piece.length
      this.#bytes += piece.length
      const ownHeader = Math.min(this.#headerBytesLeft, piece.length)
      this.#headerBytesLeft -= ownHeader
      log?.add(piece.subarray(ownHeader))
    }
  }
}
