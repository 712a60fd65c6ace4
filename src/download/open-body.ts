import type { Log } from '../base/log.ts'
import type { Fleet } from '../fleet/fleet.ts'
import type { DownloadPlan } from '../fleet/plan.ts'
import type { DownloadBody } from './download-body.ts'
import type { DownloadExchange } from './download-exchange.ts'
import type { ReopenStep } from './merge-request.ts'
import { mergedBody } from './merged-body.ts'
import type { OpenDownload } from './open-download.ts'
import { relayedBody } from './relayed-body.ts'
import { RESUME_TIMINGS } from './resume-timings.ts'
import { resumedBody } from './resumed-body.ts'
import type { BodyStart } from './running-receipt.ts'

export interface OpenBody extends DownloadBody {
  /** Of a merge: see MergedBody. */
  readonly park?: () => void
  readonly unpark?: (reopen: ReopenStep) => void
  /** Headers that only this body has. */
  readonly head?: () => Readonly<Record<string, string>>
  /** Where it begins, when it is the rest of another one. */
  readonly start?: BodyStart
}

export interface OpenBodyOptions extends Pick<DownloadExchange, 'options' | 'resume' | 'res'> {
  readonly fleet: Fleet
  readonly log: Log
  readonly signal: AbortSignal
  /** Before a device that broke off is asked a second time. */
  readonly retryPauseMs: number
}

/** The body of the streams; for a continued download, read up to where the client needs it. */
export async function openBody(
  plan: DownloadPlan,
  opened: OpenDownload,
  { options, resume, res, fleet, log, signal, retryPauseMs }: OpenBodyOptions,
): Promise<OpenBody> {
  const [only] = opened.sources
  if (plan.kind === 'relay' && only !== undefined) {
    return fromPoint(relayedBody(only), resume)
  }
  const merged = await mergedBody({
    plan,
    sources: opened.sources,
    failures: opened.failures,
    options,
    reopen: opened.reopen,
    clockOf: (device) => fleet.clockOf(device),
    log,
    timings: { ...RESUME_TIMINGS, pauseMs: retryPauseMs },
    signal,
  })
  // Until then chunks may be on their way to the client. When it has come already, the memory is not used again.
  res.once('close', () => merged.release())
  return fromPoint(merged, resume)
}

function fromPoint(body: OpenBody, resume: OpenBodyOptions['resume']): OpenBody | Promise<OpenBody> {
  return resume === undefined ? body : resumedBody(body, resume)
}
