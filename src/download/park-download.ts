import { CapfleetError } from '../base/error.ts'
import type { DownloadPlan } from '../fleet/plan.ts'
import { watchSlowClient } from '../http/slow-client.ts'
import type { DownloadExchange, DownloadParts } from './download-exchange.ts'
import { Parking, type ParkingOptions } from './parking.ts'

/** A lease, whose holder ends with it. */
type Held = AsyncDisposable & { readonly lost: AbortSignal }

export interface ParkOptions
  extends Pick<DownloadExchange, 'res' | 'requestId' | 'user'>,
    Pick<ParkingOptions, 'signal' | 'writtenBytes' | 'onFailure'> {
  /** Gives the present streams and lease back. */
  readonly release: () => Promise<void>
  /** Owns the new lease from now on; throws when it is lost already. */
  readonly hold: (held: Held) => void
}

/** The body of a download that can stop and go on. */
export interface ParkableBody<Opened extends Held> {
  /** Ends its device streams; what it has read still goes out. */
  park(): void
  /** Waits for a place, for at most so long. */
  open(waitMs: number): Promise<Opened>
  /** Goes on. */
  unpark(opened: Opened): void
}

/** Parks the download while its client is slow. */
export function parkDownload<Opened extends Held>(
  body: ParkableBody<Opened>,
  plan: DownloadPlan,
  parts: DownloadParts,
  options: ParkOptions,
): Parking {
  const { res, requestId, signal, release, hold } = options
  const park = async () => {
    // The handler stays.
    res.setTimeout(parts.parkedIdleTimeoutMs)
    body.park()
    await release()
    parts.metrics.parked()
    parts.log.info('download.parked', { requestId })
  }
  const unpark = async () => {
    const opened = await body.open(parts.parkedIdleTimeoutMs)
    if (signal.aborted) return opened[Symbol.asyncDispose]()
    hold(opened)
    res.setTimeout(parts.clientIdleTimeoutMs)
    body.unpark(opened)
    parts.log.info('download.unparked', { requestId })
  }
  const isWanted = () => areDevicesWanted(plan, parts)
  return new Parking({ ...options, turnMs: parts.parkAfterMs, isWanted, park, unpark })
}

const TOO_SLOW = new CapfleetError(
  'client-timeout',
  'the client took less than 1 MiB for too long while others waited for the device; ask again, or for less',
)

/** Ends a download that cannot go on where it stopped while its client is slow: nobody holds a device for ever. */
export function cutWhileSlow(
  plan: DownloadPlan,
  parts: DownloadParts,
  { res, writtenBytes, onFailure }: ParkOptions,
): Disposable {
  const isWanted = () => areDevicesWanted(plan, parts)
  const onSlow = () => onFailure(TOO_SLOW)
  return watchSlowClient({ res, turnMs: parts.slowAfterMs, writtenBytes, isWanted, onSlow })
}

async function areDevicesWanted({ steps }: DownloadPlan, { leases }: DownloadParts): Promise<boolean> {
  const uses = await leases.use(steps.map((step) => step.device))
  return uses.some(({ waiting }) => waiting > 0)
}
