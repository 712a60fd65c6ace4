/** Everything below /devices/{device}/. */
import { CapfleetError } from '../base/error.ts'
import type { DeviceProxy } from '../fleet/device-proxy.ts'
import type { DeviceReads } from '../fleet/device-reads.ts'
import type { FleetMember } from '../fleet/fleet.ts'
import { planDownload } from '../fleet/plan.ts'
import { badParameter } from '../query/query-parameters.ts'
import { answerDownload } from './answer-download.ts'
import { selectedMembers, withoutDevice } from './fleet-selection.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { parseRequestQuery, type RequestedDownload } from './parse-request-query.ts'
import { refuseBody, refuseUnsafeChange } from './refuse-request.ts'
import type { RouteContext, RouteHandler } from './route.ts'

/** A download from one device. Bad parameters are refused before a lease is taken. */
export function downloadFromDevice(
  kind: RequestedDownload['kind'],
  parse: RequestedDownload['parse'],
): RouteHandler {
  return async (ctx, parts) => {
    const { device } = deviceOf(ctx, parts).member
    await answerDownload(ctx, parts, () =>
      planDownload(parseRequestQuery(ctx, parts, { kind, parse }), [device.name], 1),
    )
  }
}

/** A call at the root whose answer cannot be put together from several devices'. */
export async function passToChosenDevice(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  const [member, ...others] = selectedMembers(ctx, parts)
  if (member === undefined || others.length > 0) {
    throw badParameter('Device', `must name one device here; or ask /devices/{device}${ctx.path}`)
  }
  await pass(ctx, parts, member, { path: ctx.path, query: withoutDevice(ctx.querystring), way: parts.proxy })
}

/** A call that changes something on the device. */
export async function changeDevice(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  refuseUnsafeChange(ctx)
  const { member, path } = deviceOf(ctx, parts)
  try {
    await pass(ctx, parts, member, { path, query: ctx.querystring, way: parts.proxy })
  } finally {
    member.captures.forget()
  }
}

/** A call that only reads and ends, passed through the short way. */
export function readDevice(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  const { member, path } = deviceOf(ctx, parts)
  return pass(ctx, parts, member, { path, query: ctx.querystring, way: parts.reads })
}

/** Any other call, passed through: it might change something, or be one whose answer goes on. */
export async function callDevice(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  const { member, path } = deviceOf(ctx, parts)
  if (!isPlainPath(path)) {
    throw new CapfleetError(
      'not-found',
      `devices have no path ${path}; paths have no empty, dotted or escaped parts and are spelled as in the API reference`,
    )
  }
  await pass(ctx, parts, member, { path, query: ctx.querystring, way: parts.proxy })
}

function deviceOf(ctx: RouteContext, parts: GatewayParts): { member: FleetMember; path: string } {
  const member = parts.fleet.choose(ctx.params.device ?? '')
  return { member, path: ctx.path.slice(ctx.path.indexOf('/', '/devices/'.length)) }
}

interface PassedCall {
  readonly path: string
  readonly query: string
  readonly way: DeviceProxy | DeviceReads
}

function pass(
  ctx: RouteContext,
  parts: GatewayParts,
  { device, breaker }: FleetMember,
  { path, query, way }: PassedCall,
): Promise<void> {
  refuseBody(ctx)
  ctx.respond = false
  const target = query === '' ? path : `${path}?${query}`
  const forward = () => way.forward(device, target, ctx.req, ctx.res)
  return parts.controlCalls.run(device.name, () => breaker.run(forward))
}

const PLAIN_PATH = /^(\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$/
/** Paths with rows of their own in the table; a device may read other spellings of them as the same. */
const OTHER_ROWS = /^\/(pcap|api\/v1\/pcap)(\/|$)|^\/sysmaster\/capture_(start|stop)$/i

/** Whether the path means on the device what the table took it for here. */
function isPlainPath(path: string): boolean {
  return PLAIN_PATH.test(path) && !OTHER_ROWS.test(path)
}
