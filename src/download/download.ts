/**
 * A download from its plan to the last byte. Until the first byte a failure is thrown and becomes an
 * HTTP status; afterwards the connection is cut inside a record. The response's `close` owns leases
 * and device streams: it comes in every case, also when nobody ever reads the body.
 */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { cutResponse } from '../base/cut-response.ts'
import { CapfleetError } from '../base/error.ts'
import type { Log } from '../base/log.ts'
import type { DownloadPlan } from '../fleet/plan.ts'
import type { DownloadBody } from './download-body.ts'
import { downloadHead } from './download-head.ts'
import { mergedBody } from './merged-body.ts'
import { type OpenDownload, type OpenParts, openDownload } from './open-download.ts'
import { TRAILER_NAMES } from './passed-trailers.ts'
import { relayBody } from './relay.ts'
import type { RunningDownloads } from './running-downloads.ts'

export interface DownloadParts extends OpenParts {
  readonly running: RunningDownloads
  readonly log: Log
  /** A client that takes nothing for so long is cut off. */
  readonly clientIdleTimeoutMs: number
}

export interface DownloadExchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly requestId: string
  readonly user: string
  /** How long to wait for a free stream. */
  readonly waitMs: number
}

/** Answers the request. Resolves when the response has closed; throws only before the first byte. */
export async function serveDownload(
  plan: DownloadPlan,
  parts: DownloadParts,
  exchange: DownloadExchange,
): Promise<void> {
  const { res, user, waitMs } = exchange
  const abort = new AbortController()
  const owned = new AsyncDisposableStack()
  owned.defer(parts.running.add(abort))
  const release = () => owned.disposeAsync()
  res.once('close', () => {
    abort.abort(CLIENT_GONE)
    release().catch((err) =>
      parts.log.error('download.release-failed', { requestId: exchange.requestId, err }),
    )
  })
  if (res.closed) abort.abort(CLIENT_GONE)
  try {
    const opened = await openDownload(plan, parts, { user, waitMs, signal: abort.signal })
    if (owned.disposed) {
      await opened[Symbol.asyncDispose]()
      throw CLIENT_GONE
    }
    owned.use(opened)
    opened.lost.addEventListener('abort', () => abort.abort(opened.lost.reason), { once: true })
    const body = await bodyOf(plan, opened, abort.signal)
    res.writeHead(200, { ...headOf(plan, opened, body), ...trailerAnnouncement(exchange.req) })
    await stream(body, parts, exchange, { abort, release })
  } catch (error) {
    await release()
    if (abort.signal.reason === CLIENT_GONE) return parts.metrics.ended('client-gone')
    parts.metrics.ended('refused')
    throw error
  }
}

const CLIENT_GONE = new Error('the client has gone')

function bodyOf(plan: DownloadPlan, { sources }: OpenDownload, signal: AbortSignal): Promise<DownloadBody> {
  const [only] = sources
  if (plan.kind === 'relay' && only !== undefined) return Promise.resolve(relayBody(only))
  return mergedBody(sources, plan.query, signal)
}

function headOf(plan: DownloadPlan, { sources }: OpenDownload, body: DownloadBody): Record<string, string> {
  const [only] = sources
  const deviceHeaders = plan.kind === 'relay' && only !== undefined ? only.headers : {}
  return downloadHead(plan, { encoding: body.encoding, deviceHeaders })
}

/** Only for clients that said they read them; an HTTP/1.0 answer cannot have any. */
function trailerAnnouncement(req: IncomingMessage): Record<string, string> {
  return wantsTrailers(req) ? { Trailer: TRAILER_NAMES } : {}
}

function wantsTrailers(req: IncomingMessage): boolean {
  return req.httpVersion === '1.1' && /(^|,)\s*trailers\b/i.test(String(req.headers.te ?? ''))
}

/** The second phase: from here on the body is completed or the connection is cut. */
async function stream(
  body: DownloadBody,
  parts: DownloadParts,
  { req, res, requestId }: DownloadExchange,
  { abort, release }: { readonly abort: AbortController; readonly release: () => Promise<void> },
): Promise<void> {
  res.setTimeout(parts.clientIdleTimeoutMs, () => abort.abort(CLIENT_IDLE))
  try {
    for await (const chunk of body.chunks) {
      parts.metrics.sent(chunk.length)
      if (!res.write(chunk)) await once(res, 'drain', { signal: abort.signal })
      abort.signal.throwIfAborted()
    }
    if (wantsTrailers(req)) res.addTrailers({ 'Capfleet-Complete': '1', ...body.trailers() })
    res.end()
    if (!res.closed) await once(res, 'close')
    parts.metrics.ended(res.writableFinished ? 'complete' : 'client-gone')
  } catch (error) {
    const reason = abort.signal.aborted ? abort.signal.reason : error
    if (reason === CLIENT_GONE) return parts.metrics.ended('client-gone')
    parts.metrics.ended('cut')
    parts.log.warn('download.cut', { requestId, ...describe(reason) })
    // The client may take its time to read what was sent; the devices' slots need not wait for that.
    await release()
    await cutResponse(res, body.cutMark())
  }
}

const CLIENT_IDLE = new CapfleetError('device-timeout', 'the client took nothing for too long')

function describe(error: unknown): Record<string, unknown> {
  if (!(error instanceof CapfleetError)) return { err: error }
  return { code: error.code, message: error.message, devices: error.details.members?.devices }
}
