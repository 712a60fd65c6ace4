import { CapfleetError } from '../../../shared/base/error.ts'
import type { DownloadQuery } from '../../../shared/query/download/download-query.ts'
import { parseDownloadQuery } from '../../../shared/query/download/parse-download-query.ts'
import { isForeign } from '../../device/device-kind.ts'
import { callerLabel } from '../../device/device-request.ts'
import { type FleetMember, kindOfMember } from '../../fleet/fleet.ts'
import type { DownloadStep } from '../../fleet/plan/plan.ts'
import { checkFilters, needsCheck } from '../../fleet/questions/check-filters.ts'
import { requestSignal } from './request-caller.ts'
import type { RequestParts } from './request-parts.ts'
import type { RouteContext } from './route-context.ts'

/** Checks filters early, because a mistake need not wait for a stream. */
export async function refuseBadFilters(
  ctx: RouteContext,
  plan: { readonly query: DownloadQuery; readonly steps: readonly Pick<DownloadStep, 'device'>[] },
  parts: RequestParts,
): Promise<void> {
  if (!needsCheck(plan.query)) return
  const members = plan.steps.flatMap((step) => parts.fleet.find(step.device) ?? [])
  await check(ctx, { query: plan.query, members }, parts)
}

/** The same for a single filter, given in the parameter `param`. */
export async function refuseBadFilter(
  ctx: RouteContext,
  filter: string,
  param: string,
  parts: RequestParts,
): Promise<void> {
  const given = new Map(Object.entries({ TSBegin: '-1s', TSEnd: 'now', FilterBPF: filter }))
  const nowNs = BigInt(Date.now()) * 1_000_000n
  const query = parseDownloadQuery('timerange', given, { zone: parts.limits.timeZone, nowNs })
  try {
    await check(ctx, { query, members: parts.fleet.members }, parts)
  } catch (error) {
    if (!(error instanceof CapfleetError && error.code === 'bad-bpf')) throw error
    throw new CapfleetError('bad-bpf', error.message, { ...error.details, param })
  }
}

interface Checked {
  readonly query: DownloadQuery
  /**
   * One of them is asked, but no third-party device: the API has no estimates. If none answers, the filter is not
   * checked.
   */
  readonly members: readonly FleetMember[]
}

async function check(ctx: RouteContext, { query, members }: Checked, parts: RequestParts): Promise<void> {
  const member = members.find((one) => one.breaker.state !== 'open' && !isForeign(kindOfMember(one)))
  if (member === undefined) return
  using leaving = requestSignal(ctx)
  await checkFilters(query, member.client, {
    caller: callerLabel(ctx.state.caller?.name ?? ''),
    timeoutMs: parts.limits.probeTimeoutMs,
    signal: leaving.signal,
  })
}
