import type { DownloadPlan } from '../fleet/plan.ts'
import type { DownloadParts } from './download-exchange.ts'
import type { OpenBody } from './open-body.ts'
import { reacquire } from './open-download.ts'
import { cutWhileSlow, type ParkOptions, parkDownload } from './park-download.ts'

/** Parks the download while its client is slow, or cuts it when its body cannot go on where it stopped. */
export function parkMerge(
  body: OpenBody,
  plan: DownloadPlan,
  parts: DownloadParts,
  options: ParkOptions,
): Disposable {
  if (body.park === undefined) return cutWhileSlow(plan, parts, options)
  const { requestId, user, signal } = options
  const devices = plan.steps.map((step) => step.device)
  const parkable = {
    park: () => body.park?.(),
    open: (waitMs: number) => reacquire(parts, { id: requestId, user, signal, waitMs, devices }),
    unpark: ({ reopen }: Awaited<ReturnType<typeof reacquire>>) => body.unpark?.(reopen),
  }
  return parkDownload(parkable, plan, parts, options)
}
