/** Control calls at the root: sent to all selected devices, with one answer per device. */
import { givenParameters } from '../../../shared/contract/request-parameters.ts'
import { refuseBody } from '../../../shared/http/request-body.ts'
import { ignoredNames } from '../../../shared/query/ignored-names.ts'
import { requireParameter } from '../../../shared/query/read-parameters.ts'
import type { FleetMember } from '../../fleet/fleet.ts'
import { fanOut, formatReplies, ignoredOf, statusOf } from '../../fleet/questions/fan-out.ts'
import { captureHolder } from '../request/capture-holder.ts'
import { membersToChange, selectedMembers, withoutDevice } from '../request/fleet-selection.ts'
import { refuseUnsafeChange } from '../request/refuse-request.ts'
import { requestSignal } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { FleetParts } from './fleet-parts.ts'

/** A call that only reads. */
export async function askDevices(ctx: RouteContext, parts: FleetParts): Promise<void> {
  using leaving = requestSignal(ctx)
  const members = selectedMembers(ctx, parts)
  await answerFromAll(ctx, parts, { members, signal: leaving.signal, isChange: false })
}

/** capture_start and capture_stop. */
export async function changeDevices(ctx: RouteContext, parts: FleetParts): Promise<void> {
  refuseUnsafeChange(ctx)
  await change(ctx, parts, membersToChange(ctx, parts))
}

/** Deletes a capture on the one device that holds it; the device requires its full name. */
export async function deleteFleetCapture(ctx: RouteContext, parts: FleetParts): Promise<void> {
  refuseUnsafeChange(ctx)
  const name = requireParameter(givenParameters(ctx), 'StreamName')
  await change(ctx, parts, [parts.fleet.get(await captureHolder(name, ctx, parts))])
}

/** Completed even if the caller leaves: a fleet of which half is recording is of no use. */
async function change(ctx: RouteContext, parts: FleetParts, members: readonly FleetMember[]): Promise<void> {
  ctx.state.facts = { ...ctx.state.facts, devices: members.map(({ device }) => device.name) }
  try {
    await answerFromAll(ctx, parts, { members, signal: new AbortController().signal, isChange: true })
  } finally {
    for (const { captures } of members) captures.forget()
  }
}

async function answerFromAll(
  ctx: RouteContext,
  parts: FleetParts,
  {
    members,
    ...options
  }: {
    readonly members: readonly FleetMember[]
    readonly signal: AbortSignal
    readonly isChange: boolean
  },
): Promise<void> {
  refuseBody(ctx)
  const query = withoutDevice(ctx.querystring)
  const target = query === '' ? ctx.path : `${ctx.path}?${query}`
  const { controlTimeoutMs: timeoutMs, probeTimeoutMs: downTimeoutMs } = parts.limits
  const user = ctx.state.caller?.name
  // The device itself decides what it returns without credentials.
  const calls = {
    callLimits: parts.callLimits,
    user: user ?? '',
    isAnonymous: user === undefined,
    emptiesQueries: ctx.state.emptiesQueries === true,
  }
  const replies = await fanOut(members, target, { timeoutMs, downTimeoutMs, ...options, ...calls })
  const ignored = ignoredOf(replies)
  if (ignored.length > 0) ctx.set('Capfleet-Ignored', ignoredNames(ignored))
  ctx.status = statusOf(replies)
  ctx.type = 'application/json'
  ctx.body = formatReplies(replies)
}
