/** /api/v1/system/status. */
import { takeNoParameters } from '../../src/contract/request-parameters.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { toExactJson } from './exact-json.ts'
import { readStatus, shownGroups } from './status-groups.ts'

export async function answerStatus(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  takeNoParameters(ctx)
  const { timestamp, ver, groups } = readStatus(parts)
  ctx.set('Cache-Control', 'no-store')
  ctx.type = 'json'
  ctx.body = toExactJson({
    timestamp,
    ver,
    ...shownGroups(groups, ctx.state.caller),
  })
}
