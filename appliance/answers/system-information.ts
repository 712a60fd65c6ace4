/** /api/v1/system/time_current and version (API sections 4.3 and 2.2). */
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { nowNs } from '../appliance-parts.ts'
import { takeNoParameters } from '../request/finish-parameters.ts'
import { buildTime, productVersion } from '../system-status/product-version.ts'

/** Text of 19 digits, because scripts do arithmetic on it; JSON for those that ask for it. */
export async function answerTime(_parts: ApplianceParts, ctx: ApplianceContext): Promise<void> {
  takeNoParameters(ctx)
  const time = String(nowNs())
  ctx.set('Cache-Control', 'no-store')
  if (ctx.accepts('text/plain', 'application/json') === 'application/json') {
    ctx.body = { time_current: time }
    return
  }
  ctx.type = 'text/plain'
  ctx.body = `${time}\n`
}

export async function answerVersion(parts: ApplianceParts, ctx: ApplianceContext): Promise<void> {
  takeNoParameters(ctx)
  ctx.body = { version: productVersion(), device: parts.config.model, build: buildTime() }
}
