import { checkSameRequest, optionsAgain, planAgain } from '../download/resume-plan.ts'
import { resumePoint } from '../download/resume-point.ts'
import type { GatewayOptions } from '../query/gateway-options.ts'
import { WAIT_MAX_S } from '../query/parse-download-query.ts'
import { QueryParameters } from '../query/query-parameters.ts'
import type { PlannedDownload } from './answer-download.ts'
import { ownReceipt } from './find-receipt.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { RouteContext } from './route.ts'

/** The download that Resume= names, from where its client has it. */
export async function continueRequest(
  ctx: RouteContext,
  parts: GatewayParts,
  options: GatewayOptions,
): Promise<PlannedDownload> {
  const receipt = await ownReceipt(ctx, parts, options.resumeId ?? '')
  checkSameRequest(receipt, ctx.path, ctx.querystring)
  const plan = planAgain(receipt, parts.limits.devicesMax)
  const resume = resumePoint(receipt, options.offsetBytes)
  parts.downloads.metrics.resumed()
  const waitS = new QueryParameters(ctx.querystring).takeInteger('Wait', 0n, WAIT_MAX_S)
  const query = { ...plan.query, waitS: waitS === undefined ? undefined : Number(waitS) }
  return { plan: { ...plan, query }, options: optionsAgain(receipt, options), resume }
}
