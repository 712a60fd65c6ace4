import type { DownloadPlan } from '../fleet/plan.ts'
import type { DownloadParts } from './download-exchange.ts'
import type { OpenBody } from './open-body.ts'
import { reacquire } from './open-download.ts'
import { type ParkOptions, parkDownload } from './park-download.ts'
import type { Parking } from './parking.ts'

/** Parks the download while its client is slow; undefined when its body cannot go on where it stopped. */
export function parkMerge(
  body: OpenBody,
  plan: DownloadPlan,
  parts: DownloadParts,
  options: ParkOptions,
): Parking | undefined {
  if (body.park === undefined) return undefined
  const { requestId, user, signal } = options
  const devices = plan.steps.map((step) => step.device)
  const parkable = {
    park: () => body.park?.(),
    open: (waitMs: number) => reacquire(parts, { id: requestId, user, signal, waitMs, devices }),
    unpark: ({ reopen }: Awaited<ReturnType<typeof reacquire>>) => body.unpark?.(reopen),
  }
  return parkDownload(parkable, plan, parts, options)
}
