import { callerLabel } from '../device/device-request.ts'
import { checkFilters, needsCheck } from '../fleet/check-filters.ts'
import type { DownloadPlan } from '../fleet/plan.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { requestSignal } from './request-signal.ts'
import type { RouteContext } from './route.ts'

/** A mistake in a filter need not wait for a stream. */
export async function refuseBadFilters(
  ctx: RouteContext,
  plan: DownloadPlan,
  parts: GatewayParts,
): Promise<void> {
  if (!needsCheck(plan.query)) return
  const members = plan.steps.flatMap((step) => parts.fleet.find(step.device) ?? [])
  const member = members.find(({ breaker }) => breaker.state !== 'open')
  if (member === undefined) return
  using leaving = requestSignal(ctx)
  await checkFilters(plan.query, member.client, {
    caller: callerLabel(ctx.state.caller?.name ?? ''),
    timeoutMs: parts.limits.probeTimeoutMs,
    signal: leaving.signal,
  })
}
