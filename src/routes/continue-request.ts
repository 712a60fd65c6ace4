import { givenParameters } from '../contract/request-parameters.ts'
import type { DownloadPlan } from '../fleet/plan.ts'
import { DOWNLOAD_PARAMETERS } from '../query/download-parameters.ts'
import type { GatewayOptions } from '../query/gateway-options.ts'
import { readParameters } from '../query/read-parameters.ts'
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
  const given = givenParameters(ctx)
  checkSameRequest(receipt, ctx.path, given)
  const plan = planAgain(receipt, parts.limits.devicesMax)
  const resumed = resumedRequest(receipt, options.offsetBytes)
  parts.downloads.metrics.resumed()
  const query = { ...plan.query, ...readParameters({ waitS: DOWNLOAD_PARAMETERS.waitS }, given) }
  return { plan: { ...plan, query }, options: optionsAgain(receipt, options), resumed }
}
