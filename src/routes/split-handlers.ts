import { QueryParameters } from '../query/query-parameters.ts'
import { captureHolder } from './capture-holder.ts'
import { withoutDevice } from './fleet-selection.ts'
import type { GatewayParts } from './gateway-parts.ts'
import { requestSignal } from './request-signal.ts'
import type { RouteContext } from './route.ts'

/**
 * /stream/ssize and /stream/stime over the fleet: the answer of the one device that holds the
 * capture, with its name as `Device` and links that lead to it.
 */
export async function listFleetSplits(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  const name = new QueryParameters(ctx.querystring).require('StreamName')
  const device = await captureHolder(name, ctx, parts)
  const { breaker, client } = parts.fleet.get(device)
  using leaving = requestSignal(ctx)
  const answer = await breaker.run(() =>
    client.getJson(`${ctx.path}?${withoutDevice(ctx.querystring)}`, leaving.signal),
  )
  const { List, ...rest } = answer as { List?: unknown }
  const splits = Array.isArray(List) ? List : []
  ctx.body = { ...rest, Device: device, List: splits.map((split) => linkedThrough(device, split)) }
}

/** A device's link is relative to itself. */
function linkedThrough(device: string, split: unknown): unknown {
  const { PCAP } = split as { PCAP?: unknown }
  return typeof PCAP === 'string' ? { ...(split as object), PCAP: `/devices/${device}${PCAP}` } : split
}
