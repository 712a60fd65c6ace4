/** /api/v1/system/io_stats (API section 2.3). */
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { nowNs } from '../appliance-parts.ts'
import { takeNoParameters } from '../request/finish-parameters.ts'

/** The reading is at most a few seconds old; `timestamp` says when it was made. */
export async function answerIoStatistics({ sensors }: ApplianceParts, ctx: ApplianceContext): Promise<void> {
  takeNoParameters(ctx)
  const io = sensors.diskIo.value
  ctx.set('Cache-Control', 'no-store')
  ctx.body = {
    timestamp: String(io?.atNs ?? nowNs()),
    ioqueue_active: String(io?.inFlight ?? 0),
    unavailable: io === undefined ? ['ioqueue_active'] : [],
  }
}
