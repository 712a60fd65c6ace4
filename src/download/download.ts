/**
 * A download from its plan to the last byte. Until the first byte a failure is thrown and becomes an
 * HTTP status; afterwards the connection is cut inside an element of the format. The response's
 * `close` owns leases and device streams: it comes in every case, also when nobody ever reads the
 * body. The receipt is written before the client can see the end.
 */

import { CapfleetError } from '../base/error.ts'
import type { DownloadPlan } from '../fleet/plan.ts'
import { cutResponse } from '../http/cut-response.ts'
import type { QueuePlace } from '../lease/lease.ts'
import { encodingOf, PARTIAL_ELEMENTS } from '../query/query-values.ts'
import { type DownloadExchange, type DownloadParts, wantsTrailers } from './download-exchange.ts'
import { downloadHead } from './download-head.ts'
import type { DownloadOutcome } from './download-outcomes.ts'
import { endOfBody, endTrailers } from './end-of-body.ts'
import { failureFields } from './failure-fields.ts'
import { type OpenBody, openBody } from './open-body.ts'
import { type OpenDownload, openDownload } from './open-download.ts'
import { cutWhileSlow, type ParkOptions } from './park-download.ts'
import { parkMerge } from './park-merge.ts'
import { isParkable, parkRelay } from './park-relay.ts'
import { TRAILER_NAMES } from './passed-trailers.ts'
import type { ParkableRelay } from './relay.ts'
import { planFromMark } from './resume-plan.ts'
import { type ReceiptEnd, RunningReceipt, reportedError } from './running-receipt.ts'
import { endBody, sendBody } from './send-body.ts'
import { sendRelayed } from './send-relayed.ts'
import type { Source } from './source.ts'

/** Answers the request. Resolves when the response has closed; throws only before the first byte. */
export async function serveDownload(
  plan: DownloadPlan,
  parts: DownloadParts,
  exchange: DownloadExchange,
): Promise<void> {
  await new Download(plan, parts, exchange).serve()
}

const CLIENT_GONE = new Error('the client has gone')
const CLIENT_IDLE = new CapfleetError('client-timeout', 'the client took nothing for too long')

class Download {
  readonly #plan: DownloadPlan
  /** The part of the plan that the client does not have. */
  readonly #asked: DownloadPlan
  readonly #parts: DownloadParts
  readonly #exchange: DownloadExchange
  readonly #receipt: RunningReceipt
  readonly #abort = new AbortController()
  #place: QueuePlace | undefined
  /** The lease with its streams, unless the download is parked. */
  #held: AsyncDisposable | undefined
  /** Once nothing may be held any more. */
  #released: Promise<void> | undefined
  /** Once its chunks are being sent. */
  #body: OpenBody | undefined
  /** Whether somebody has cut the connection already. */
  #isCut = false

  constructor(plan: DownloadPlan, parts: DownloadParts, exchange: DownloadExchange) {
    this.#plan = plan
    this.#parts = parts
    this.#exchange = exchange
    const { requestId, user, path, options, askedHash, resume } = exchange
    this.#asked = planFromMark(plan, resume)
    this.#receipt = new RunningReceipt({
      id: requestId,
      user,
      path,
      plan,
      options,
      askedHash,
      resumedId: resume?.id,
      hashes: options.digest && !this.#isPlainRelay,
    })
  }

  async serve(): Promise<void> {
    this.#begin()
    try {
      const opened = await this.#open()
      if (this.#isPlainRelay) await this.#relay(opened)
      else await this.#send(opened)
    } catch (error) {
      const { signal } = this.#abort
      // A relay knows by itself why it was cut.
      await this.#fail(signal.aborted && !this.#isCut ? signal.reason : error)
    }
  }

  #begin(): void {
    const { res, requestId, revoked } = this.#exchange
    const { running, receipts } = this.#parts
    running.add(this.#abort)
    receipts.watch(requestId, () => this.#receipt.now())
    const onRevoked = () => this.#abort.abort(revoked?.reason)
    revoked?.addEventListener('abort', onRevoked, { once: true })
    res.once('close', () => {
      revoked?.removeEventListener('abort', onRevoked)
      this.#abort.abort(CLIENT_GONE)
      void this.#release()
    })
    if (res.closed) this.#abort.abort(CLIENT_GONE)
  }

  /** Idempotent. */
  #release(): Promise<void> {
    this.#released ??= this.#letGo().then(() => this.#parts.running.delete(this.#abort))
    return this.#released
  }

  async #open(): Promise<OpenDownload> {
    const { requestId, user, waitMs, options } = this.#exchange
    const opened = await openDownload(this.#asked, this.#parts, {
      id: requestId,
      user,
      waitMs,
      signal: this.#abort.signal,
      onError: options.onError,
      onPosition: (place) => {
        this.#place ??= place
      },
    })
    if (this.#released !== undefined) {
      await opened[Symbol.asyncDispose]()
      throw CLIENT_GONE
    }
    this.#hold(opened)
    this.#receipt.waited(opened.waitedMs)
    return opened
  }

  /** Owns the lease from now on, and ends with it. */
  #hold(held: AsyncDisposable & { readonly lost: AbortSignal }): void {
    const { lost } = held
    // A lease that was given back is lost without harm.
    const onLost = () => this.#held === held && this.#abort.abort(lost.reason)
    this.#held = held
    lost.addEventListener('abort', onLost, { once: true })
    if (lost.aborted) throw lost.reason
  }

  /** Gives streams and lease back; the download goes on without them. Idempotent. */
  async #letGo(): Promise<void> {
    const held = this.#held
    this.#held = undefined
    try {
      await held?.[Symbol.asyncDispose]()
    } catch (err) {
      this.#parts.log.error('download.release-failed', { requestId: this.#exchange.requestId, err })
    }
  }

  /** Bytes pass as they are, from their first one. */
  get #isPlainRelay(): boolean {
    const { resume } = this.#exchange
    return this.#plan.kind === 'relay' && resume === undefined
  }

  async #relay(opened: OpenDownload): Promise<void> {
    const [source] = opened.sources
    if (source === undefined) throw new Error('a relay has one source')
    const { req, options } = this.#exchange
    await sendRelayed(source, this.#receipt, {
      ...this.#exchange,
      head: this.#head({ encoding: source.encoding, deviceHeaders: source.headers }),
      signal: this.#abort.signal,
      digest: options.digest,
      wantsTrailers: wantsTrailers(req),
      clientIdleTimeoutMs: this.#parts.clientIdleTimeoutMs,
      onBytes: (bytes) => this.#parts.metrics.sent(bytes),
      onEnd: (end) => this.#save(end),
      onCut: (reason) => this.#cutBy(reason),
      watch: (relay) => this.#whileReading(this.#parkRelay(relay, source)),
    })
    this.#count('complete')
  }

  /** The relay breaks the connection by itself. */
  #cutBy(reason: unknown): void {
    this.#isCut = true
    if (reason !== CLIENT_GONE) this.#save({ status: 'failed', error: reportedError(reason) })
    void this.#release()
  }

  async #send(opened: OpenDownload): Promise<void> {
    const { res, req } = this.#exchange
    const { signal } = this.#abort
    const body = await openBody(this.#asked, opened, { ...this.#exchange, ...this.#parts, signal })
    this.#body = body
    this.#receipt.reportBy(() => body.report())
    if (body.start !== undefined) this.#receipt.startAt(body.start)
    res.writeHead(200, { ...this.#head(body), ...this.#trailerAnnouncement() })
    res.setTimeout(this.#parts.clientIdleTimeoutMs, () => {
      // Without anything to take, it is the devices that are slow.
      if (res.writableLength > 0) this.#abort.abort(CLIENT_IDLE)
    })
    using reading = this.#whileReading(parkMerge(body, this.#asked, this.#parts, this.#parkOptions))
    const onRead = () => reading[Symbol.dispose]()
    await sendBody(body.chunks, res, { signal, onChunk: (chunk) => this.#sent(chunk), onRead })
    const end = endOfBody(body, this.#receipt.digest())
    this.#save(end)
    await endBody(res, wantsTrailers(req) ? endTrailers(body, end, this.#receipt.bytes) : {})
    if (res.writableFinished) this.#count(end.status === 'partial' ? 'partial' : 'complete')
    else this.#end('client-gone', { status: 'client-gone' })
  }

  #parkRelay(relay: ParkableRelay, source: Source): Disposable {
    if (!isParkable(source, this.#asked)) return cutWhileSlow(this.#asked, this.#parts, this.#parkOptions)
    const sentSoFar = () => this.#receipt.sentSoFar()
    return parkRelay(relay, this.#asked, this.#parts, { ...this.#parkOptions, sentSoFar })
  }

  get #parkOptions(): ParkOptions {
    return {
      ...this.#exchange,
      signal: this.#abort.signal,
      writtenBytes: () => this.#receipt.bytes,
      release: () => this.#letGo(),
      hold: (held) => this.#hold(held),
      onFailure: (error) => this.#abort.abort(error),
    }
  }

  /** Dispose it when the devices are needed no more; the client may take its time to read the rest. */
  #whileReading(slowness: Disposable): Disposable {
    return {
      [Symbol.dispose]: () => {
        slowness[Symbol.dispose]()
        void this.#letGo()
      },
    }
  }

  #sent(chunk: Uint8Array): void {
    this.#receipt.sent(chunk)
    this.#parts.metrics.sent(chunk.length)
  }

  #head(
    answer: Parameters<typeof downloadHead>[1] & Partial<Pick<OpenBody, 'head'>>,
  ): Record<string, string> {
    return {
      ...downloadHead(this.#plan, answer),
      ...answer.head?.(),
      ...(this.#place === undefined ? {} : { 'Capfleet-Queue-Position': String(this.#place.position) }),
    }
  }

  #trailerAnnouncement(): Record<string, string> {
    return wantsTrailers(this.#exchange.req) ? { Trailer: TRAILER_NAMES } : {}
  }

  async #fail(reason: unknown): Promise<void> {
    const { res, requestId } = this.#exchange
    // Also for what is on its way to a new lease.
    this.#abort.abort(reason)
    await this.#release()
    if (reason === CLIENT_GONE) return this.#end('client-gone', { status: 'client-gone' })
    const end = { status: 'failed', error: reportedError(reason) } as const
    if (!res.headersSent) {
      this.#end('refused', end)
      throw reason
    }
    this.#parts.fleet.suspect(reason)
    this.#parts.log.warn('download.cut', { requestId, ...failureFields(reason) })
    if (this.#isCut) return this.#count('cut')
    this.#end('cut', end)
    // The client may take its time to read what was sent; the devices' slots need not wait for that.
    const encoding = encodingOf(this.#plan.query.compression)
    await cutResponse(res, this.#body?.cutMark() ?? PARTIAL_ELEMENTS[encoding])
  }

  #end(outcome: DownloadOutcome, end: ReceiptEnd): void {
    this.#save(end)
    this.#count(outcome)
  }

  #save(end: ReceiptEnd): void {
    this.#parts.receipts.save(this.#receipt.end(end))
  }

  #count(outcome: DownloadOutcome): void {
    this.#parts.metrics.ended(outcome, this.#plan.kind)
  }
}
