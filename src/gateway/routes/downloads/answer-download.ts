import { CapfleetError } from '../../../shared/base/error.ts'
import { givenParameters } from '../../../shared/contract/request-parameters.ts'
import { refuseLaterRange } from '../../../shared/http/later-range.ts'
import { DOWNLOAD_PARAMETERS } from '../../../shared/query/download/download-parameters.ts'
import { type GatewayOptions, parseGatewayOptions } from '../../../shared/query/download/gateway-options.ts'
import { bodyEncodingOf } from '../../../shared/query/download/query-values.ts'
import { badParameter } from '../../../shared/query/query-parameters.ts'
import { readParameters } from '../../../shared/query/read-parameters.ts'
import { foreseeDownload } from '../../fetch/body/foresee-download.ts'
import { type DownloadPlan, withinProfiles } from '../../fleet/plan/plan.ts'
import { downloadHead } from '../../serve/download-head.ts'
import {
  askedHash,
  checkSameRequest,
  optionsAgain,
  planAgain,
  type ResumedRequest,
  resumedRequest,
} from '../../serve/resume-request.ts'
import { serveDownload } from '../../serve/serve-download.ts'
import { orderDownload } from '../exports/export-handlers.ts'
import { actorOf, auditChange } from '../request/audited.ts'
import { refuseBadFilters } from '../request/check-download.ts'
import { refuseWhileDraining } from '../request/refuse-request.ts'
import { requestSignal } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { DownloadsParts } from './downloads-parts.ts'
import { ownReceipt } from './receipt-handlers.ts'

const WAY_ON =
  'send the request without Range, or request the rest of the same file with Resume=<its Capfleet-Request-Id>&Offset=<bytes of the file>'

/** What is served: a new plan, or one from a receipt. */
interface PlannedDownload {
  readonly plan: DownloadPlan
  readonly options: GatewayOptions
  readonly resumed: ResumedRequest | undefined
}

/**
 * Answers with the download that `makePlan` plans, or continues another one (Resume=). For HEAD the gateway and the
 * devices make the same checks and return the headers, without taking a stream.
 */
export async function answerDownload(
  ctx: RouteContext,
  parts: DownloadsParts,
  makePlan: () => DownloadPlan | Promise<DownloadPlan>,
): Promise<void> {
  refuseWhileDraining(parts)
  refuseLaterRange(ctx.req, WAY_ON)
  const options = parseGatewayOptions(givenParameters(ctx))
  const planned =
    options.resumeId === undefined
      ? { plan: await makePlan(), options, resumed: undefined }
      : await continueRequest(ctx, parts, options)
  const { fleet } = parts.downloads
  await fleet.knowKinds(planned.plan.steps.map(({ device }) => device))
  const plan = withinProfiles(planned.plan, fleet)
  refuseImpossible(plan, planned.options)
  const download = { ...planned, plan }
  await refuseBadFilters(ctx, plan, parts)
  if (options.queueJob) {
    const order = () => orderDownload(ctx, parts, planned.plan, options)
    return await auditChange(ctx, parts.audit, order, { changes: 'export' })
  }
  if (ctx.method === 'HEAD') return await answerHead(ctx, parts, download)
  ctx.respond = false
  await serve(ctx, parts, download)
}

/** The download that Resume= names, starting after what its client has. */
async function continueRequest(
  ctx: RouteContext,
  parts: DownloadsParts,
  options: GatewayOptions,
): Promise<PlannedDownload> {
  const receipt = await ownReceipt(ctx, parts, options.resumeId ?? '')
  const given = givenParameters(ctx)
  checkSameRequest(receipt, ctx.path, given)
  const plan = planAgain(receipt, parts.limits.devicesMax, given)
  const resumed = resumedRequest(receipt, plan.query, options.offsetBytes)
  parts.downloads.metrics.resumed()
  const query = { ...plan.query, ...readParameters({ waitS: DOWNLOAD_PARAMETERS.waitS }, given) }
  return { plan: { ...plan, query }, options: optionsAgain(receipt, options), resumed }
}

/** The devices have not stated anything about the bytes themselves. */
async function answerHead(
  ctx: RouteContext,
  { callLimits, downloads }: DownloadsParts,
  { plan, options }: PlannedDownload,
): Promise<void> {
  using leaving = requestSignal(ctx)
  const facts = await foreseeDownload(
    plan,
    { fleet: downloads.fleet, callLimits, timeoutMs: downloads.startTimeoutMs },
    { user: ctx.state.caller?.name ?? '', options, signal: leaving.signal },
  )
  ctx.respond = false
  ctx.res.writeHead(200, downloadHead(plan, bodyEncodingOf(plan.query), facts))
  ctx.res.end()
}

async function serve(
  ctx: RouteContext,
  parts: DownloadsParts,
  { plan, options, resumed }: PlannedDownload,
): Promise<void> {
  const { waitS, waitMaxS } = parts.limits
  const { caller } = ctx.state
  using use = await parts.quotas.begin(ctx.state.requestId, caller?.bounds.quotas ?? [])
  try {
    await serveDownload(plan, parts.downloads, {
      req: ctx.req,
      res: ctx.res,
      requestId: ctx.state.requestId,
      user: caller?.name ?? '',
      timing: ctx.state.timing,
      revoked: [use.spent, ...(caller === undefined ? [] : [caller.revoked])],
      onSent: (bytes) => use.sent(bytes),
      actor: actorOf(ctx),
      path: ctx.path,
      querystring: ctx.querystring,
      waitMs: Math.min(plan.query.waitS ?? waitS, waitMaxS) * 1_000,
      options,
      askedHash: askedHash(ctx.path, givenParameters(ctx)),
      resumed,
    })
  } catch (error) {
    const position = error instanceof CapfleetError ? error.details.members?.position : undefined
    if (typeof position === 'number') ctx.set('Capfleet-Queue-Position', String(position))
    throw error
  }
}

function refuseImpossible({ steps }: DownloadPlan, options: GatewayOptions): void {
  if (options.queueJob && options.resumeId !== undefined)
    throw badParameter('Queue', 'creates an export, which cannot resume a download; leave out Resume')
  if (options.align && steps.length === 1) {
    throw badParameter(
      'Align',
      'is for several devices; with a single device there is nothing to align; remove it',
    )
  }
}
