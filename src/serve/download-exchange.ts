/** What a download is served with. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FetchParts } from '../fetch/fetch-download.ts'
import type { GatewayOptions } from '../query/gateway-options.ts'
import type { DownloadOutcomes } from './download-outcomes.ts'
import type { ReceiptStore } from './receipt-store.ts'
import type { ResumedRequest } from './resume-request.ts'
import type { RunningDownloads } from './running-downloads.ts'
import type { SlowReaderParts } from './slow-reader.ts'

export interface DownloadParts extends FetchParts, SlowReaderParts {
  readonly running: RunningDownloads
  readonly receipts: ReceiptStore
  readonly metrics: DownloadOutcomes
}

export interface DownloadExchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly requestId: string
  readonly user: string
  /** Aborts, with an error as its reason, when the user may not have the download any more. */
  readonly revoked: AbortSignal | undefined
  /** Of the request. */
  readonly path: string
  /** How long to wait for a free stream. */
  readonly waitMs: number
  readonly options: GatewayOptions
  /** askedHash() of the query string. */
  readonly askedHash: string
  /** The download that is continued. */
  readonly resumed: ResumedRequest | undefined
}

/** Only a client that says it reads trailers gets them; an HTTP/1.0 answer cannot have any. */
export function wantsTrailers(req: IncomingMessage): boolean {
  return req.httpVersion === '1.1' && /(^|,)\s*trailers\b/i.test(String(req.headers.te ?? ''))
}
