import { ASKED_NAME_RULE, isAskedName } from '../../../shared/query/capture-name-rule.ts'
import { badParameter } from '../../../shared/query/query-parameters.ts'
import { ANSWER_BYTES_MAX } from '../../device/device-client.ts'
import { callerLabel } from '../../device/device-request.ts'
import type { Holding } from '../../fleet/captures/device-captures.ts'
import type { FleetMember } from '../../fleet/fleet.ts'
import { askMembers, type MembersAnswers } from '../../fleet/questions/ask-members.ts'
import { holderOf, holderUnknown, unknownCapture } from '../../fleet/questions/find-capture.ts'
import { sourceMembers } from './fleet-selection.ts'
import { requestSignal } from './request-caller.ts'
import type { RequestParts } from './request-parts.ts'
import type { RouteContext } from './route-context.ts'

/**
 * The name of the one device, among those that the request selects, that holds the capture. Fails with bad-parameter,
 * ambiguous-capture, aged-out or unknown-capture. If no device that answers has it and some do not answer, it fails
 * with the error of one of these, and names them all.
 */
export async function captureHolder(
  captureName: string,
  ctx: RouteContext,
  parts: RequestParts,
): Promise<string> {
  if (!isAskedName(captureName)) throw badParameter('StreamName', ASKED_NAME_RULE)
  using leaving = requestSignal(ctx)
  const { signal } = leaving
  const ask = (members: readonly FleetMember[], maxAgeMs: number) =>
    askMembers(members, signal, ({ captures }) => captures.holding(captureName, { maxAgeMs, signal }))
  const { answers, unreachable } = await ask(sourceMembers(ctx, parts), HOLDING_AGE_MS)
  const holder = holderIn(captureName, answers)
  if (holder !== undefined) return holder
  // It may have been started since the devices were asked.
  const present = answers.map(({ member }) => member)
  const again = await ask(present, 0)
  const newHolder = holderIn(captureName, again.answers)
  if (newHolder !== undefined) return newHolder
  const missing = [...unreachable, ...again.unreachable]
  if (missing.length > 0) throw holderUnknown(captureName, missing)
  const near = await refuseAgedOut(captureName, { ctx, parts, signal })
  throw unknownCapture(captureName, [...again.answers.flatMap(({ answer }) => answer.names), ...near])
}

type Answers = MembersAnswers<Holding>['answers']

function holderIn(captureName: string, answers: Answers): string | undefined {
  const holdings = answers.map(({ member, answer: { match } }) => ({ device: member.device.name, match }))
  return holderOf(captureName, holdings)
}

interface Asking {
  readonly ctx: RouteContext
  readonly parts: RequestParts
  readonly signal: AbortSignal
}

/**
 * Fails with aged-out if a device says that it used to hold the capture; lists only contain existing ones. Otherwise
 * returns the names that devices suggest instead.
 */
async function refuseAgedOut(
  captureName: string,
  { ctx, parts, signal }: Asking,
): Promise<readonly string[]> {
  const user = ctx.state.caller?.name ?? ''
  const limit = { caller: callerLabel(user), timeoutMs: parts.limits.probeTimeoutMs, signal }
  const target = `/api/v1/pcap/estimate?StreamName=${encodeURIComponent(captureName)}`
  const { unreachable } = await askMembers(sourceMembers(ctx, parts), signal, ({ device, client, breaker }) =>
    parts.callLimits.run({ device: device.name, user }, () =>
      breaker.run(() => client.getText(target, { ...limit, bytesMax: ANSWER_BYTES_MAX.estimate })),
    ),
  )
  const refusals = unreachable.map(({ error }) => error)
  const agedOut = refusals.find(({ code }) => code === 'aged-out')
  if (agedOut !== undefined) throw agedOut
  return refusals.flatMap(({ code, details }) =>
    code === 'unknown-capture' ? ((details.members?.candidates as readonly string[] | undefined) ?? []) : [],
  )
}

/** Lets a thousand downloads that begin together share one question to each device. */
const HOLDING_AGE_MS = 1_500
