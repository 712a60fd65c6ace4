/** Calls passed on to one device: all below /devices/{device}/ but downloads, and at the root what several cannot answer. */

import { addAbortListener } from 'node:events'
import { CapfleetError } from '../../../shared/base/error.ts'
import { givenParameters } from '../../../shared/contract/request-parameters.ts'
import { refuseCrossSite } from '../../../shared/http/cross-site.ts'
import { refuseBody } from '../../../shared/http/request-body.ts'
import { resetConnection } from '../../../shared/http/reset-connection.ts'
import { formatDownloadQuery } from '../../../shared/query/format-download-query.ts'
import { estimatedKind, parseDownloadQuery } from '../../../shared/query/parse-download-query.ts'
import { withoutPluses } from '../../../shared/query/parse-query-string.ts'
import { badParameter } from '../../../shared/query/query-parameters.ts'
import { callerLabel } from '../../device/device-request.ts'
import { passRead } from '../../device/passed-call.ts'
import type { FleetMember } from '../../fleet/fleet.ts'
import { selectedMembers, withoutDevice } from '../request/fleet-selection.ts'
import { parseRequestQuery } from '../request/parse-request-query.ts'
import { refuseUnsafeChange, refuseWhileDraining } from '../request/refuse-request.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { FleetParts } from './fleet-parts.ts'

/** A call at the root whose answer cannot be put together from several devices'. */
export async function passToChosenDevice(ctx: RouteContext, parts: FleetParts): Promise<void> {
  refuseWhileDraining(parts)
  const [member, ...others] = selectedMembers(ctx, parts)
  if (member === undefined || others.length > 0) {
    throw badParameter('Device', `must name one device here; alternatively, use /devices/{device}${ctx.path}`)
  }
  await pass(ctx, parts, member, { path: ctx.path, query: withoutDevice(ctx.querystring), way: 'proxy' })
}

/** A call that changes something on the device. */
export async function changeDevice(ctx: RouteContext, parts: FleetParts): Promise<void> {
  refuseUnsafeChange(ctx)
  const { member, path } = deviceOf(ctx, parts)
  try {
    await pass(ctx, parts, member, { path, query: withoutPluses(ctx.querystring), way: 'proxy' })
  } finally {
    member.captures.forget()
  }
}

/** A call that only reads and ends, passed through the short way. */
export function askDevice(ctx: RouteContext, parts: FleetParts): Promise<void> {
  const { member, path } = deviceOf(ctx, parts)
  return pass(ctx, parts, member, { path, query: withoutPluses(ctx.querystring), way: 'read' })
}

/** A call that only reads, and may go on until the caller leaves. */
export async function followDevice(ctx: RouteContext, parts: FleetParts): Promise<void> {
  refuseWhileDraining(parts)
  const { member, path } = deviceOf(ctx, parts)
  refuseOddPath(path)
  await pass(ctx, parts, member, { path, query: withoutPluses(ctx.querystring), way: 'proxy' })
}

/**
 * Any other call: the gateway does not know what it does there, so it is guarded as a change is. HEAD
 * reaches the device as HEAD: whoever may change the device may also ask it for less.
 */
export async function callDevice(ctx: RouteContext, parts: FleetParts): Promise<void> {
  refuseCrossSite(ctx.req)
  const { member, path } = deviceOf(ctx, parts)
  refuseOddPath(path)
  try {
    await pass(ctx, parts, member, { path, query: ctx.querystring, way: 'proxy' })
  } finally {
    member.captures.forget()
  }
}

/** What a download would deliver. The caller's longest time range counts. */
export function askEstimate(ctx: RouteContext, parts: FleetParts): Promise<void> {
  const { member, path } = deviceOf(ctx, parts)
  const { bounds } = ctx.state.caller ?? {}
  if (bounds?.spanMaxS === undefined) return askDevice(ctx, parts)
  const kind = estimatedKind(givenParameters(ctx))
  const query = parseRequestQuery(ctx, parts, { kind, parse: parseDownloadQuery, at: 'gateway' })
  return pass(ctx, parts, member, { path, query: formatDownloadQuery(query), way: 'read' })
}

function deviceOf(ctx: RouteContext, parts: FleetParts): { member: FleetMember; path: string } {
  const member = parts.fleet.choose(ctx.params.device ?? '')
  return { member, path: ctx.path.slice(ctx.path.indexOf('/', '/devices/'.length)) }
}

interface PassedOn {
  readonly path: string
  readonly query: string
  /** By our own client, for what only reads and ends; by http-proxy, for all else. */
  readonly way: 'read' | 'proxy'
}

async function pass(
  ctx: RouteContext,
  parts: FleetParts,
  { device, client, breaker }: FleetMember,
  { path, query, way }: PassedOn,
): Promise<void> {
  refuseBody(ctx)
  ctx.respond = false
  const { req, res } = ctx
  const user = ctx.state.caller?.name ?? ''
  const call = {
    target: query === '' ? path : `${path}?${query}`,
    caller: callerLabel(user),
    emptiesQueries: ctx.state.emptiesQueries === true,
  }
  const timeoutMs = parts.limits.controlTimeoutMs
  // A device knows best what it tells everybody.
  const isAnonymous = ctx.state.caller?.name === undefined
  const forward = () =>
    way === 'read'
      ? passRead(client, { ...call, timeoutMs, isAnonymous }, req, res)
      : parts.proxy.forward(device, call, req, res)
  using _allowed = cutWhenRevoked(ctx)
  await parts.callLimits.run({ device: device.name, user }, () => breaker.run(forward))
}

/**
 * An answer that goes on, such as events, ends when its reader may not have it any more. A listener that has left keeps
 * the next one that came, and so on, until old objects are looked through: what it holds must live as long anyway.
 */
function cutWhenRevoked({ req: { socket }, state }: RouteContext): Disposable | undefined {
  const revoked = state.caller?.revoked
  return revoked && addAbortListener(revoked, () => resetConnection(socket))
}

const PLAIN_PATH = /^(\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$/
/** Paths with rows of their own in the table; a device may read other spellings of them as the same. */
const OTHER_ROWS = /^\/(pcap|api\/v1\/pcap)(\/|$)|^\/sysmaster\/capture_(start|stop)$/i

/** Fails with not-found when the path may mean something else on the device than the table took it for here. */
function refuseOddPath(path: string): void {
  if (PLAIN_PATH.test(path) && !OTHER_ROWS.test(path)) return
  throw new CapfleetError(
    'not-found',
    `devices have no path ${path}; paths have no empty, dotted or escaped parts and are spelled as in the API reference`,
  )
}
