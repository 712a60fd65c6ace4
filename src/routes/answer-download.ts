import { CapfleetError } from '../base/error.ts'
import { serveDownload } from '../download/download.ts'
import { downloadHead } from '../download/download-head.ts'
import { checkFilters } from '../fleet/check-filters.ts'
import type { DownloadPlan } from '../fleet/plan.ts'
import { encodingOf } from '../query/query-values.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { requestSignal } from './request-signal.ts'
import type { RouteContext } from './route.ts'

/** Answers with the planned download; HEAD gets the headers and takes no stream. */
export async function answerDownload(
  ctx: RouteContext,
  plan: DownloadPlan,
  parts: GatewayParts,
): Promise<void> {
  ctx.respond = false
  if (ctx.method === 'HEAD') {
    ctx.res.writeHead(200, downloadHead(plan, { encoding: encodingOf(plan.query.compression) }))
    ctx.res.end()
    return
  }
  await refuseBadFilters(ctx, plan, parts)
  const { waitS, waitMaxS } = parts.limits
  const exchange = {
    req: ctx.req,
    res: ctx.res,
    requestId: ctx.state.requestId,
    user: ctx.state.user ?? '',
    waitMs: Math.min(plan.query.waitS ?? waitS, waitMaxS) * 1_000,
  }
  try {
    await serveDownload(plan, parts.downloads, exchange)
  } catch (error) {
    const position = error instanceof CapfleetError ? error.details.members?.position : undefined
    if (typeof position === 'number') ctx.set('Capfleet-Queue-Position', String(position))
    throw error
  }
}

/** A mistake in a filter need not wait for a stream. */
async function refuseBadFilters(ctx: RouteContext, plan: DownloadPlan, parts: GatewayParts): Promise<void> {
  const client = parts.clients.get(plan.steps[0]?.device ?? '')
  if (client === undefined) return
  using leaving = requestSignal(ctx)
  await checkFilters(plan.query, client, {
    timeoutMs: parts.limits.probeTimeoutMs,
    signal: leaving.signal,
  })
}
