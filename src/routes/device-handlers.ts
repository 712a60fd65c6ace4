/** Everything below /devices/{device}/. */
import { CapfleetError } from '../base/error.ts'
import type { Device } from '../fleet/device.ts'
import { planDownload } from '../fleet/plan.ts'
import { unknownDevice } from '../fleet/unknown-device.ts'
import { answerDownload } from './answer-download.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { parseRequestQuery, type RequestedDownload } from './parse-request-query.ts'
import type { RouteContext, RouteHandler } from './route.ts'

/** A download from one device. Bad parameters are refused before a lease is taken. */
export function downloadFromDevice(
  kind: RequestedDownload['kind'],
  parse: RequestedDownload['parse'],
): RouteHandler {
  return async (ctx, parts) => {
    const { device } = deviceOf(ctx, parts)
    const query = parseRequestQuery(ctx, parts, { kind, parse })
    await answerDownload(ctx, planDownload(query, [device.name], 1), parts)
  }
}

/** A GET that changes something on the device: a web page of another site must not send it. */
export async function changeDevice(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  if (ctx.get('Sec-Fetch-Site') === 'cross-site') {
    throw new CapfleetError(
      'cross-site',
      'a page of another site may not start, stop or delete a capture; open the address directly',
    )
  }
  const { device, path } = deviceOf(ctx, parts)
  await pass(ctx, parts, device, path)
}

/** A call that has a row of its own in the table, passed through. */
export async function passToDevice(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  const { device, path } = deviceOf(ctx, parts)
  await pass(ctx, parts, device, path)
}

/** Any other call, passed through. */
export async function callDevice(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  const { device, path } = deviceOf(ctx, parts)
  if (!isPlainPath(path)) {
    throw new CapfleetError(
      'not-found',
      `devices have no path ${path}; paths have no empty, dotted or escaped parts and are spelled as in the API reference`,
    )
  }
  await pass(ctx, parts, device, path)
}

function deviceOf(ctx: RouteContext, parts: GatewayParts): { device: Device; path: string } {
  const name = ctx.params.device ?? ''
  const device = parts.fleet.find((entry) => entry.name === name)
  if (device === undefined) {
    const names = parts.fleet.map((entry) => entry.name)
    throw unknownDevice(name, names, 'device')
  }
  return { device, path: ctx.path.slice(ctx.path.indexOf('/', '/devices/'.length)) }
}

async function pass(ctx: RouteContext, parts: GatewayParts, device: Device, path: string): Promise<void> {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = ctx.req.headers
  if (length !== '0' || coding !== undefined) {
    throw new CapfleetError('bad-parameter', 'the request has a body; devices take none')
  }
  ctx.respond = false
  const query = ctx.querystring === '' ? '' : `?${ctx.querystring}`
  await parts.proxy.forward(device, path + query, ctx.req, ctx.res)
}

const PLAIN_PATH = /^(\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$/
/** Paths with rows of their own in the table; a device may read other spellings of them as the same. */
const OTHER_ROWS = /^\/(pcap|api\/v1\/pcap)(\/|$)|^\/sysmaster\/capture_(start|stop)$/i

/** Whether the path means on the device what the table took it for here. */
function isPlainPath(path: string): boolean {
  return PLAIN_PATH.test(path) && !OTHER_ROWS.test(path)
}
