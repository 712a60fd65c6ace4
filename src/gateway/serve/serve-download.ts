/**
 * A download from its plan to the last byte. Until the first byte a failure is thrown and becomes an HTTP status;
 * afterwards the connection is cut inside an element of the format. The response's `close` event releases leases and
 * device streams: it always fires, even if nobody ever reads the body. The receipt and the end in the audit are
 * written before the client can see the end.
 */
import { addAbortListener } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { CapfleetError } from '../../shared/base/error.ts'
import { JoinedSignal } from '../../shared/base/joined-signal.ts'
import { cutResponse } from '../../shared/http/cut-response.ts'
import type { ServerTiming } from '../../shared/http/server-timing.ts'
import type { GatewayOptions } from '../../shared/query/download/gateway-options.ts'
import { bodyEncodingOf, PARTIAL_ELEMENTS } from '../../shared/query/download/query-values.ts'
import type { AuditActor } from '../audit/audit-events.ts'
import type { Audit } from '../audit/audit-log.ts'
import type { Body } from '../fetch/body/body.ts'
import { FetchedDownload, type FetchParts } from '../fetch/body/fetch-download.ts'
import type { DownloadPlan } from '../fleet/plan/plan.ts'
import { planFacts } from '../fleet/plan/plan-facts.ts'
import type { QueuePlace } from '../lease/lease.ts'
import { DownloadAudit } from './download-audit.ts'
import { downloadHead } from './download-head.ts'
import type { DownloadOutcome, DownloadOutcomes } from './download-outcomes.ts'
import { statusOf } from './download-status.ts'
import { endTrailers, TRAILER_NAMES } from './download-trailers.ts'
import type { ReceiptStore } from './receipt-store.ts'
import { CLIENT_IDLE, type PouredBody, relayDownload } from './relay.ts'
import type { ResumedRequest } from './resume-request.ts'
import type { RunningDownloads } from './running-downloads.ts'
import { type ReceiptEnd, RunningReceipt, reportedError } from './running-receipt.ts'
import { endBody, sendBody } from './send-body.ts'
import { type SlowReaderParts, watchReader } from './slow-reader.ts'

export interface DownloadParts extends FetchParts, SlowReaderParts {
  readonly running: RunningDownloads
  readonly receipts: ReceiptStore
  readonly audit: Audit
  readonly metrics: DownloadOutcomes
}

export interface DownloadExchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly requestId: string
  readonly user: string
  /** Each aborts, with an error as its reason, when the user loses the right to the download. */
  readonly revoked: readonly AbortSignal[]
  /** Records how long the steps up to the head of the answer took. */
  readonly timing: Pick<ServerTiming, 'note'>
  /** Called with the length of each piece that is sent. */
  readonly onSent: (bytes: number) => void
  readonly actor: AuditActor
  /** The path of the request. */
  readonly path: string
  /** The query string as given, for the audit. */
  readonly querystring: string
  /** How long to wait for a free stream. */
  readonly waitMs: number
  readonly options: GatewayOptions
  /** askedHash() of the query string. */
  readonly askedHash: string
  /** The download that is continued. */
  readonly resumed: ResumedRequest | undefined
}

/** Answers the request. Resolves when the response has closed; throws only before the first byte. */
export async function serveDownload(
  plan: DownloadPlan,
  parts: DownloadParts,
  exchange: DownloadExchange,
): Promise<void> {
  await new Download(plan, parts, exchange).serve()
}

const CLIENT_GONE = new Error('the client disconnected')

class Download {
  readonly #plan: DownloadPlan
  readonly #parts: DownloadParts
  readonly #exchange: DownloadExchange
  readonly #receipt: RunningReceipt
  readonly #audit: DownloadAudit
  readonly #abort = new AbortController()
  readonly #startedMs = performance.now()
  #place: QueuePlace | undefined
  #fetched: FetchedDownload | undefined
  /** The release of lease and streams; undefined before it begins. */
  #released: Promise<void> | undefined
  /** Whether the connection has been cut already. */
  #isCut = false

  constructor(plan: DownloadPlan, parts: DownloadParts, exchange: DownloadExchange) {
    this.#plan = plan
    this.#parts = parts
    this.#exchange = exchange
    const { requestId, user, path, options, askedHash, resumed } = exchange
    this.#receipt = new RunningReceipt({ id: requestId, user, path, plan, options, askedHash, resumed })
    const { actor, querystring: query } = exchange
    const asked = planFacts(
      plan.query,
      plan.steps.map(({ device }) => device),
    )
    this.#audit = new DownloadAudit(parts.audit, { actor, path, query, plan: asked, resumedId: resumed?.id })
  }

  async serve(): Promise<void> {
    this.#begin()
    try {
      await this.#audit.begin()
      const fetched = await this.#fetch()
      const { body } = fetched
      if (isPoured(body)) await this.#relay(fetched, body)
      else await this.#send(fetched)
    } catch (error) {
      const { signal } = this.#abort
      // A relay already knows why it was cut.
      await this.#fail(signal.aborted && !this.#isCut ? signal.reason : error)
    }
  }

  #begin(): void {
    const { res, requestId, revoked } = this.#exchange
    const { running, receipts } = this.#parts
    running.add(this.#abort)
    receipts.watch(requestId, () => this.#receipt.now())
    const ends = new JoinedSignal(revoked)
    addAbortListener(ends.signal, () => this.#abort.abort(ends.signal.reason))
    res.once('close', () => {
      ends[Symbol.dispose]()
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

  async #fetch(): Promise<FetchedDownload> {
    const { res, requestId, user, waitMs, options, resumed, timing } = this.#exchange
    let leasedMs = performance.now()
    const fetched = await FetchedDownload.open(this.#plan, this.#parts, {
      id: requestId,
      user,
      // A download that follows may last forever.
      class: this.#plan.query.follow ? 'bulk' : 'interactive',
      waitMs,
      options,
      from: resumed,
      signal: this.#abort.signal,
      onPosition: (place) => {
        this.#place ??= place
      },
      onWaited: (waitedMs) => {
        leasedMs = performance.now()
        timing.note('queue', waitedMs)
        this.#parts.metrics.waited(waitedMs)
        this.#receipt.waited(waitedMs)
      },
      onLost: (reason) => this.#abort.abort(reason),
    })
    timing.note('devices', performance.now() - leasedMs)
    // Until then chunks may be in transit to the client. If `close` has already fired, the memory is not reused.
    res.once('close', () => fetched.body[Symbol.dispose]())
    if (this.#released !== undefined) {
      await fetched[Symbol.asyncDispose]()
      throw CLIENT_GONE
    }
    this.#fetched = fetched
    this.#receipt.follow(fetched.body)
    this.#abort.signal.throwIfAborted()
    return fetched
  }

  /** Releases streams and lease; what was read may still be sent. Idempotent. */
  async #letGo(): Promise<void> {
    try {
      await this.#fetched?.[Symbol.asyncDispose]()
    } catch (err) {
      this.#parts.log.error('download.release-failed', { requestId: this.#exchange.requestId, err })
    }
  }

  /** Bytes are forwarded unchanged, from the first one. */
  async #relay(fetched: FetchedDownload, body: PouredBody): Promise<void> {
    using reading = this.#whileReading(fetched)
    await relayDownload(body, {
      res: this.#exchange.res,
      head: this.#head(fetched.body),
      signal: this.#abort.signal,
      clientIdleTimeoutMs: this.#parts.clientIdleTimeoutMs,
      onPiece: (piece) => this.#sent(piece),
      onRead: () => reading[Symbol.dispose](),
      onWhole: () => this.#whole(fetched.body),
      onCut: (reason) => this.#cutBy(reason),
      onHanded: () => this.#handed(),
    })
    this.#count(outcomeOf(fetched.body))
  }

  /** The relay breaks the connection itself. */
  #cutBy(reason: unknown): void {
    this.#isCut = true
    if (reason !== CLIENT_GONE) this.#save({ status: 'failed', error: reportedError(reason) })
    void this.#release()
  }

  async #send(fetched: FetchedDownload): Promise<void> {
    const { res } = this.#exchange
    const { signal } = this.#abort
    const { body } = fetched
    res.writeHead(200, this.#head(body))
    res.setTimeout(this.#parts.clientIdleTimeoutMs, () => {
      // If there is nothing for the client to read, it is the devices that are slow.
      if (res.writableLength > 0) this.#abort.abort(CLIENT_IDLE)
    })
    using reading = this.#whileReading(fetched)
    const onRead = () => reading[Symbol.dispose]()
    await sendBody(body.chunks, res, { signal, onChunk: (chunk) => this.#sent(chunk), onRead })
    await endBody(res, await this.#whole(body))
    if (!res.writableFinished) return this.#end('client-gone', { status: 'client-gone' })
    this.#count(outcomeOf(body))
  }

  /** Dispose it when the devices are no longer needed; the client may take its time to read the rest. */
  #whileReading(fetched: FetchedDownload): Disposable {
    const { res, requestId } = this.#exchange
    const slowness = watchReader(fetched, this.#parts, {
      res,
      requestId,
      signal: this.#abort.signal,
      writtenBytes: () => this.#receipt.bytes,
      onFailure: (error) => this.#abort.abort(error),
    })
    return {
      [Symbol.dispose]: () => {
        slowness[Symbol.dispose]()
        void this.#letGo()
      },
    }
  }

  #sent(piece: Uint8Array): void {
    this.#receipt.sent(piece)
    this.#exchange.onSent(piece.length)
    this.#parts.metrics.sent(piece.length)
  }

  /** The body is complete: writes audit and receipt, and returns the trailers. */
  async #whole(body: Body): Promise<Readonly<Record<string, string>>> {
    const result = body.result()
    const receipt = this.#receipt.end({ status: statusOf(result), result })
    await this.#audit.end(receipt)
    this.#parts.receipts.save(receipt)
    if (!wantsTrailers(this.#exchange.req)) return {}
    return endTrailers(result, { bytes: this.#receipt.bytes, sha256: this.#receipt.digest() })
  }

  #head({ encoding, facts }: Body): Record<string, string> {
    return {
      ...downloadHead(this.#plan, encoding, facts),
      ...(this.#place === undefined ? {} : { 'Capfleet-Queue-Position': String(this.#place.position) }),
      ...(wantsTrailers(this.#exchange.req) ? { Trailer: TRAILER_NAMES.join(', ') } : {}),
    }
  }

  async #fail(reason: unknown): Promise<void> {
    const { res, requestId } = this.#exchange
    // This also ends a parked download that is waiting for a new lease.
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
    this.#parts.metrics.cut(end.error.code)
    if (this.#isCut) return this.#count('cut')
    this.#end('cut', end)
    // The devices' streams are free at once; the client may take its time to read what was sent.
    const encoding = bodyEncodingOf(this.#plan.query)
    const mark = this.#fetched?.body.cutMark() ?? PARTIAL_ELEMENTS[encoding]
    await cutResponse(res, mark, { reason, onHanded: () => this.#handed() })
  }

  /** Records that the client of a cut download gets everything that was sent to it. */
  #handed(): void {
    this.#parts.receipts.save(this.#receipt.handed())
  }

  #end(outcome: DownloadOutcome, end: ReceiptEnd): void {
    this.#save(end)
    this.#count(outcome)
  }

  /** If a download did not end well, nothing waits for the audit. */
  #save(end: ReceiptEnd): void {
    const receipt = this.#receipt.end(end)
    this.#parts.receipts.save(receipt)
    this.#audit.end(receipt).catch(() => undefined)
  }

  #count(outcome: DownloadOutcome): void {
    const { kind, steps } = this.#plan
    this.#parts.metrics.ended(outcome, kind)
    const { requestId, user } = this.#exchange
    const { packets, bytes, waitedMs, error } = this.#receipt.now()
    this.#parts.log.info('download.ended', {
      requestId,
      user,
      outcome,
      kind,
      devices: steps.length,
      packets,
      bytes,
      waitedMs,
      durationMs: Math.round(performance.now() - this.#startedMs),
      code: error?.code,
    })
  }
}

function outcomeOf(body: Body): DownloadOutcome {
  const status = statusOf(body.result())
  return status === 'truncated' ? 'complete' : status
}

/** Only a client that says it reads trailers gets them; an HTTP/1.0 answer cannot have any. */
function wantsTrailers(req: IncomingMessage): boolean {
  return req.httpVersion === '1.1' && /(^|,)\s*trailers\b/i.test(String(req.headers.te ?? ''))
}

function isPoured(body: Body): body is Body & PouredBody {
  return body.pour !== undefined
}

/** Log fields of a failed download. */
function failureFields(error: unknown): Record<string, unknown> {
  if (!(error instanceof CapfleetError)) return { err: error }
  return { code: error.code, message: error.message, devices: error.details.members?.devices }
}
