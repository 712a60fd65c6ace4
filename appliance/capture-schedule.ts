/** /api/v1/capture/schedule: the rows of the configuration (api-decisions section 3). */
import type { ApplianceContext, ApplianceParts } from './appliance-parts.ts'
import { takeNoParameters } from './finish-parameters.ts'

export async function answerSchedule({ config }: ApplianceParts, ctx: ApplianceContext): Promise<void> {
  takeNoParameters(ctx)
  ctx.body = {
    List: config.capture.schedule.map(({ name, start, stop, days, zone }) => ({
      Name: name,
      Start: start,
      Stop: stop,
      Days: days,
      Zone: zone,
    })),
  }
}
