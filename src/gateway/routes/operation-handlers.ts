/** The gateway's own metrics and health. */
import { VisibleFleet } from '../fleet/visible-fleet.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { RouteContext } from './request/route-context.ts'

export async function showMetrics(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  ctx.type = parts.metrics.contentType
  const text = await parts.metrics.text()
  ctx.body = parts.fleet instanceof VisibleFleet ? seriesOf(parts.fleet, text) : text
}

const DEVICE_LABEL = /[{,]device="([^"]*)"/

/** Without the series of devices that the caller cannot see. */
function seriesOf(fleet: VisibleFleet, text: string): string {
  const isShown = (line: string) => {
    const device = DEVICE_LABEL.exec(line)?.[1]
    return device === undefined || fleet.find(device) !== undefined
  }
  return text.split('\n').filter(isShown).join('\n')
}

export async function live(ctx: RouteContext): Promise<void> {
  ctx.body = 'ok\n'
}

/**
 * Whether new requests should be routed here: not while a discovery has not reported its devices. An outage of Redis
 * is reported but does not make a replica unready: it affects all replicas alike, and running streams need the
 * gateway.
 */
export async function ready(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  const draining = parts.draining.aborted
  const { isComplete } = parts.fleet
  const isReady = isComplete && !draining
  ctx.status = isReady ? 200 : 503
  ctx.body = {
    ready: isReady,
    draining,
    devicesKnown: isComplete,
    insecure: parts.isInsecure,
    schedulerReachable: parts.downloads.leases.reachable,
    clockDistrust: parts.exports.clock.distrust ?? null,
  }
}
