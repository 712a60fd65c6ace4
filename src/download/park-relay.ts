import type { DownloadPlan } from '../fleet/plan.ts'
import type { DownloadParts } from './download-exchange.ts'
import { type OpenDownload, openDownload } from './open-download.ts'
import { type ParkOptions, parkDownload } from './park-download.ts'
import type { Parking } from './parking.ts'
import type { Checkpoint } from './receipt.ts'
import type { ParkableRelay } from './relay.ts'
import type { Source } from './source.ts'

export interface ParkRelayOptions extends ParkOptions {
  /** What the client has got, or is on its way to it. */
  readonly sentSoFar: () => Checkpoint
}

/**
 * A device need not compress the same packets into the same bytes again; and what was followed has
 * its packets in another order when it is asked for as history.
 */
export function isParkable({ encoding }: Source, { query }: DownloadPlan): boolean {
  return encoding === 'none' && !query.follow
}

/** Parks the download while its client is slow. REQUIRES: isParkable(). */
export function parkRelay(
  relay: ParkableRelay,
  plan: DownloadPlan,
  parts: DownloadParts,
  options: ParkRelayOptions,
): Parking {
  const { requestId, user, signal, sentSoFar } = options
  const request = { id: requestId, user, signal, onError: 'fail', onPosition: () => undefined } as const
  const parkable = {
    park: () => relay.park(),
    open: (waitMs: number) => openDownload(plan, parts, { ...request, waitMs }),
    unpark: ({ sources: [source] }: OpenDownload) => {
      if (source !== undefined) relay.goOn(source, sentSoFar())
    },
  }
  return parkDownload(parkable, plan, parts, options)
}
