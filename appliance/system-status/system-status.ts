/** /api/v1/system/status (API section 2.5). */
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { leasesToRefuse } from '../downloads/lease-headers.ts'
import { takeNoParameters } from '../request/finish-parameters.ts'
import { toExactJson } from './exact-json.ts'
import { readStatus, withoutPrivate } from './status-groups.ts'

export async function answerStatus(parts: ApplianceParts, ctx: ApplianceContext): Promise<void> {
  takeNoParameters(ctx)
  if (ctx.method !== 'HEAD') refuseLeases(parts, ctx)
  const { timestamp, ver, groups } = readStatus(parts)
  ctx.set('Cache-Control', 'no-store')
  ctx.type = 'json'
  ctx.body = toExactJson({
    timestamp,
    ver,
    ...(ctx.state.user === undefined ? withoutPrivate(groups) : groups),
  })
}

/**
 * For gateways that share the device: which of their downloads run, and that no other begins behind it. They
 * come as one user; the leases of other users are not theirs to refuse, nor to know.
 */
function refuseLeases({ slots }: ApplianceParts, ctx: ApplianceContext): void {
  const leases = leasesToRefuse(ctx)
  if (leases !== undefined)
    ctx.set('Capfleet-Serving', [...slots.refuseUnserved(ctx.state.user ?? '', leases)].join(', '))
}
