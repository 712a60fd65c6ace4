/**
 * Calls that are forwarded to one device: everything below /devices/{device}/ except downloads, and calls at the root
 * that cannot be combined from several devices.
 */

import { addAbortListener } from 'node:events'
import { CapfleetError } from '../../../shared/base/error.ts'
import { givenParameters } from '../../../shared/contract/request-parameters.ts'
import { refuseCrossSite } from '../../../shared/http/cross-site.ts'
import { refuseBody } from '../../../shared/http/request-body.ts'
import { resetConnection } from '../../../shared/http/reset-connection.ts'
import { formatDownloadQuery } from '../../../shared/query/download/format-download-query.ts'
import { estimatedKind, parseDownloadQuery } from '../../../shared/query/download/parse-download-query.ts'
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

/** A call at the root whose answer cannot be combined from those of several devices. */
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

/** A call that only reads and ends, forwarded the short way. */
export function askDevice(ctx: RouteContext, parts: FleetParts): Promise<void> {
  const { member, path } = deviceOf(ctx, parts)
  return pass(ctx, parts, member, { path, query: withoutPluses(ctx.querystring), way: 'read' })
}

/** A call that only reads, and may continue until the caller leaves. */
export async function followDevice(ctx: RouteContext, parts: FleetParts): Promise<void> {
  refuseWhileDraining(parts)
  const { member, path } = deviceOf(ctx, parts)
  refuseOddPath(path)
  await pass(ctx, parts, member, { path, query: withoutPluses(ctx.querystring), way: 'proxy' })
}

/**
 * Any other call: the gateway does not know what it does on the device, so it is guarded like a change. HEAD is
 * forwarded as HEAD: a caller who may change the device may also use a weaker method.
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

/** Estimates a download. The caller's maximum time range applies. */
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
  /** read: our own client, for calls that only read and end. proxy: http-proxy, for everything else. */
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
  // The device itself decides what it returns without credentials.
  const isAnonymous = ctx.state.caller?.name === undefined
  const forward = () =>
    way === 'read'
      ? passRead(client, { ...call, timeoutMs, isAnonymous }, req, res)
      : parts.proxy.forward(device, call, req, res)
  using _allowed = cutWhenRevoked(ctx)
  await parts.callLimits.run({ device: device.name, user }, () => breaker.run(forward))
}

/**
 * A continuous answer, such as events, ends when its reader loses access. A listener that has been removed references
 * the next one added, and so on, until the garbage collector examines old objects, so everything it references must
 * live that long anyway.
 */
function cutWhenRevoked({ req: { socket }, state }: RouteContext): Disposable | undefined {
  const revoked = state.caller?.revoked
  return revoked && addAbortListener(revoked, () => resetConnection(socket))
}

const PLAIN_PATH = /^(\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$/
/** Paths with routes of their own in the table; a device may treat other spellings of them as the same. */
const OTHER_ROWS = /^\/(pcap|api\/v1\/pcap)(\/|$)|^\/sysmaster\/capture_(start|stop)$/i

/** Fails with not-found if the path may mean something else to the device than to the route table here. */
function refuseOddPath(path: string): void {
  if (PLAIN_PATH.test(path) && !OTHER_ROWS.test(path)) return
  throw new CapfleetError(
    'not-found',
    `devices have no path ${path}; paths have no empty, dotted or escaped parts and are spelled as in the API reference`,
  )
}
