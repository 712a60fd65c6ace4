/** Holders of streams and waiters, across all replicas. */
import { takeNoParameters } from '../../../shared/contract/request-parameters.ts'
import type { QueueRow } from '../../lease/lease.ts'
import { seesAll } from '../request/caller-bounds.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { DownloadsParts } from './downloads-parts.ts'
import { unknownRequest } from './receipt-handlers.ts'

/** Oldest requests first; at most as many as the scheduler lists at once. */
export async function showQueue(ctx: RouteContext, parts: DownloadsParts): Promise<void> {
  takeNoParameters(ctx)
  const rows = (await parts.downloads.leases.queue()).filter(({ devices }) => seesAll(parts, devices))
  ctx.set('Cache-Control', 'no-store')
  ctx.body = { requests: rows.map(shownRow) }
}

/** One request while it waits or streams. Fails with unknown-request. */
export async function showQueuePlace(ctx: RouteContext, parts: DownloadsParts): Promise<void> {
  takeNoParameters(ctx)
  const id = ctx.params.id ?? ''
  const row = await parts.downloads.leases.place(id)
  if (row === undefined || !seesAll(parts, row.devices)) throw unknownRequest(id)
  ctx.set('Cache-Control', 'no-store')
  ctx.body = shownRow(row)
}

function shownRow({ enqueuedMs, grantedMs, position, etaMs, ...row }: QueueRow): Record<string, unknown> {
  return {
    ...row,
    enqueuedAt: new Date(enqueuedMs).toISOString(),
    grantedAt: grantedMs === undefined ? null : new Date(grantedMs).toISOString(),
    position: position ?? null,
    etaMs: etaMs === undefined ? null : Math.round(etaMs),
  }
}
