/** /v1/activity: what the devices recorded and when, side by side. */
import { ACTIVITY_PARAMETERS, ACTIVITY_RANGE } from '../../../shared/contract/device-parameters.ts'
import { givenParameters, takeParameters } from '../../../shared/contract/request-parameters.ts'
import { FLEET_PARAMETERS } from '../../../shared/query/download/gateway-options.ts'
import { readActivityRange } from '../../../shared/query/download/query-range.ts'
import { badParameter } from '../../../shared/query/query-parameters.ts'
import { deviceFailure } from '../../device/device-failure.ts'
import { formatActivity } from '../../fleet/questions/device-activity.ts'
import { type DeviceReply, fanOut } from '../../fleet/questions/fan-out.ts'
import { selectedMembers } from '../request/fleet-selection.ts'
import { requestSignal } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import { unreachableHeader } from '../request/unreachable-header.ts'
import { answerList } from './answer-list.ts'
import type { FleetParts } from './fleet-parts.ts'

/** Limit for all devices together, about ten megabytes. */
const PARTS_MAX = 600_000

/**
 * The range is parsed here, so that all devices divide the same one. Devices that do not answer are listed in their
 * place.
 */
export async function showFleetActivity(ctx: RouteContext, parts: FleetParts): Promise<void> {
  const { buckets } = takeParameters(ctx, { ...FLEET_PARAMETERS, ...ACTIVITY_RANGE, ...ACTIVITY_PARAMETERS })
  const { timeZone, controlTimeoutMs, probeTimeoutMs } = parts.limits
  const nowNs = BigInt(Date.now()) * 1_000_000n
  const range = readActivityRange(givenParameters(ctx), { zone: timeZone, nowNs })
  const members = selectedMembers(ctx, parts)
  refuseTooMuch(members.length, buckets)
  const { beginNs, endNs } = range
  const target = `/api/v1/activity?TSBegin=${beginNs}&TSEnd=${endNs}&TSUnit=nanos&Buckets=${buckets}`
  using leaving = requestSignal(ctx)
  const replies = await fanOut(members, target, {
    callLimits: parts.callLimits,
    user: ctx.state.caller?.name ?? '',
    isChange: false,
    isAnonymous: false,
    emptiesQueries: false,
    timeoutMs: controlTimeoutMs,
    downTimeoutMs: probeTimeoutMs,
    signal: leaving.signal,
  })
  const failed = replies.filter((reply) => 'error' in reply)
  if (failed.length > 0)
    ctx.set('Capfleet-Unreachable', unreachableHeader(failed.map(({ device }) => device)))
  if (range.timeZone !== undefined) ctx.set('Capfleet-Time-Zone', range.timeZone)
  ctx.set('Cache-Control', 'no-store')
  const { bucketNs, count } = cutInto(endNs - beginNs, BigInt(buckets))
  const head = { fromNs: String(beginNs), toNs: String(endNs), bucketNs: String(bucketNs) }
  await answerList(ctx, head, entriesOf(replies, count), parts.downloads.clientIdleTimeoutMs, 'devices')
}

function refuseTooMuch(devices: number, buckets: number): void {
  if (devices * buckets <= PARTS_MAX) return
  throw badParameter(
    ACTIVITY_PARAMETERS.buckets.name,
    `${buckets} of ${devices} devices are more than ${PARTS_MAX} in total; request fewer, or select devices with Device`,
  )
}

/** The same division as devices use. */
function cutInto(lengthNs: bigint, most: bigint): { readonly bucketNs: bigint; readonly count: number } {
  const bucketNs = (lengthNs + most - 1n) / most
  return { bucketNs, count: Number((lengthNs + bucketNs - 1n) / bucketNs) }
}

async function* entriesOf(
  replies: readonly DeviceReply[],
  count: number,
): AsyncGenerator<readonly string[], Readonly<Record<string, unknown>>> {
  for (const reply of replies) yield [entryOf(reply, count)]
  return {}
}

function entryOf(reply: DeviceReply, count: number): string {
  const { device } = reply
  try {
    if ('error' in reply) throw reply.error
    return formatActivity(device, reply.json, count)
  } catch (error) {
    const { code, message } = deviceFailure(device, error)
    return JSON.stringify({ device, error: { code, detail: message } })
  }
}
