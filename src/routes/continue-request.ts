import type { DownloadPlan } from '../fleet/plan.ts'
import type { GatewayOptions } from '../query/gateway-options.ts'
import { WAIT_MAX_S } from '../query/parse-download-query.ts'
import { QueryParameters } from '../query/query-parameters.ts'
import {
  checkSameRequest,
  optionsAgain,
  planAgain,
  type ResumedRequest,
  resumedRequest,
} from '../serve/resume-request.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { ownReceipt } from './request-handlers.ts'
import type { RouteContext } from './route.ts'

/** What is served: planned anew, or again from a receipt. */
export interface PlannedDownload {
  readonly plan: DownloadPlan
  readonly options: GatewayOptions
  readonly resumed: ResumedRequest | undefined
}

/** The download that Resume= names, from where its client has it. */
export async function continueRequest(
  ctx: RouteContext,
  parts: GatewayParts,
  options: GatewayOptions,
): Promise<PlannedDownload> {
  const receipt = await ownReceipt(ctx, parts, options.resumeId ?? '')
  checkSameRequest(receipt, ctx.path, ctx.querystring)
  const plan = planAgain(receipt, parts.limits.devicesMax)
  const resumed = resumedRequest(receipt, options.offsetBytes)
  parts.downloads.metrics.resumed()
  const waitS = new QueryParameters(ctx.querystring).takeInteger('Wait', 0n, WAIT_MAX_S)
  const query = { ...plan.query, waitS: waitS === undefined ? undefined : Number(waitS) }
  return { plan: { ...plan, query }, options: optionsAgain(receipt, options), resumed }
}
