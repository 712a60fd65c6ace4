/** /api/v1/system/time_current, version and io_stats. */

import { buildTime, productVersion } from '../../src/shared/base/product-version.ts'
import { takeNoParameters } from '../../src/shared/contract/request-parameters.ts'
import { type ApplianceContext, type ApplianceParts, nowNs } from '../appliance-parts.ts'

/** Text of 19 digits, because scripts do arithmetic on it; JSON on request. */
export async function answerTime(ctx: ApplianceContext): Promise<void> {
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

export async function answerVersion(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  takeNoParameters(ctx)
  ctx.body = { version: productVersion(), device: parts.config.model, build: buildTime() }
}

/** The reading is at most a few seconds old; `timestamp` says when it was made. */
export async function answerIoStatistics(ctx: ApplianceContext, { sensors }: ApplianceParts): Promise<void> {
  takeNoParameters(ctx)
  const io = sensors.diskIo.value
  ctx.set('Cache-Control', 'no-store')
  ctx.body = {
    timestamp: String(io?.atNs ?? nowNs()),
    ioqueue_active: String(io?.inFlight ?? 0),
    unavailable: io === undefined ? ['ioqueue_active'] : [],
  }
}
