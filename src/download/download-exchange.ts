/** What a download is served with. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Log } from '../base/log.ts'
import type { GatewayOptions } from '../query/gateway-options.ts'
import type { OpenParts } from './open-download.ts'
import type { ReceiptStore } from './receipt-store.ts'
import type { ResumePoint } from './resume-point.ts'
import type { RunningDownloads } from './running-downloads.ts'

export interface DownloadParts extends OpenParts {
  readonly running: RunningDownloads
  readonly receipts: ReceiptStore
  readonly log: Log
  /** Before a device that broke off in a merge is asked a second time; doubled each time after. */
  readonly retryPauseMs: number
  /** A client that takes nothing for so long is cut off. */
  readonly clientIdleTimeoutMs: number
  /** A download whose client takes less than 1 MiB in so long gives its streams to others that wait. */
  readonly parkAfterMs: number
  /** One that cannot be parked is cut when that goes on for so long. */
  readonly slowAfterMs: number
  /** clientIdleTimeoutMs for a client whose download holds no stream. */
  readonly parkedIdleTimeoutMs: number
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
  /** Where to begin, when another download is continued. */
  readonly resume: ResumePoint | undefined
}

/** Only a client that says it reads trailers gets them; an HTTP/1.0 answer cannot have any. */
export function wantsTrailers(req: IncomingMessage): boolean {
  return req.httpVersion === '1.1' && /(^|,)\s*trailers\b/i.test(String(req.headers.te ?? ''))
}
