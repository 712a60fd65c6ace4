import type { DownloadPlan } from '../fleet/plan.ts'
import type { DownloadExchange, DownloadParts } from './download-exchange.ts'
import type { OpenBody } from './open-body.ts'
import { reacquire } from './open-download.ts'
import { Parking, type ParkingOptions } from './parking.ts'

/** A lease, whose holder ends with it. */
type Held = AsyncDisposable & { readonly lost: AbortSignal }

export interface ParkMergeOptions
  extends Pick<DownloadExchange, 'res' | 'requestId' | 'user'>,
    Pick<ParkingOptions, 'signal' | 'writtenBytes' | 'onFailure'> {
  /** Gives the present streams and lease back. */
  readonly release: () => Promise<void>
  /** Owns the new lease from now on; throws when it is lost already. */
  readonly hold: (held: Held) => void
}

/** Parks the download while its client is slow; undefined when its body cannot go on where it stopped. */
export function parkMerge(
  body: OpenBody,
  plan: DownloadPlan,
  parts: DownloadParts,
  options: ParkMergeOptions,
): Parking | undefined {
  if (body.park === undefined) return undefined
  const { res, requestId, user, signal, release, hold } = options
  const devices = plan.steps.map((step) => step.device)
  const park = async () => {
    // The handler stays.
    res.setTimeout(parts.parkedIdleTimeoutMs)
    body.park?.()
    await release()
    parts.metrics.parked()
    parts.log.info('download.parked', { requestId })
  }
  const unpark = async () => {
    const waitMs = parts.parkedIdleTimeoutMs
    const held = await reacquire(parts, { id: requestId, user, signal, waitMs, devices })
    if (signal.aborted) return held[Symbol.asyncDispose]()
    hold(held)
    res.setTimeout(parts.clientIdleTimeoutMs)
    body.unpark?.(held.reopen)
    parts.log.info('download.unparked', { requestId })
  }
  const isWanted = async () => (await parts.leases.use(devices)).some(({ waiting }) => waiting > 0)
  return new Parking({ ...options, turnMs: parts.parkAfterMs, isWanted, park, unpark })
}
