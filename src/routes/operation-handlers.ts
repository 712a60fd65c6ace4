/** The gateway about itself: devices, queue, metrics, health. */
import { CapfleetError } from '../base/error.ts'
import type { DeviceClient } from '../fleet/device-client.ts'
import { deviceFailure } from '../fleet/device-failure.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { RouteContext } from './route.ts'

/** Every device: whether it answers, and how many of its streams are in use. */
export async function showDevices(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  const names = parts.fleet.map((device) => device.name)
  const [use, probes] = await Promise.all([
    // Without the scheduler the health of the devices is still worth telling.
    parts.downloads.leases.use(names).catch(() => undefined),
    Promise.all([...parts.clients.values()].map((client) => probe(client, parts.limits.probeTimeoutMs))),
  ])
  ctx.body = {
    devices: parts.fleet.map((device, index) => ({
      name: device.name,
      site: device.site ?? null,
      url: device.url.href,
      ...probes[index],
      slotsTotal: parts.limits.streamsPerDevice,
      slotsUsed: use?.[index]?.used ?? null,
      waiting: use?.[index]?.waiting ?? null,
    })),
  }
}

async function probe(client: DeviceClient, timeoutMs: number): Promise<Record<string, unknown>> {
  const late = new CapfleetError('device-timeout', `no answer within ${timeoutMs / 1_000} s`)
  const abort = new AbortController()
  const timer = setTimeout(() => abort.abort(late), timeoutMs)
  try {
    const answer = (await client.getJson('/api/v1/system/version', abort.signal)) as { version?: unknown }
    return { reachable: true, version: typeof answer.version === 'string' ? answer.version : null }
  } catch (error) {
    const { code, message } = abort.signal.aborted ? late : deviceFailure(client.device.name, error)
    return { reachable: false, version: null, error: { code, detail: message } }
  } finally {
    clearTimeout(timer)
  }
}

const STATES = { g: 'streaming', s: 'suspect', w: 'waiting' } as const

/** Who holds and who waits, over all replicas, oldest first. */
export async function showQueue(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  const rows = await parts.downloads.leases.queue()
  ctx.body = {
    requests: rows.map(
      ([id, state, devices, requestClass, user, replica, enqueuedMs, grantedMs, position]) => ({
        id,
        state: STATES[state],
        devices: devices.split(','),
        class: requestClass,
        user,
        replica,
        enqueuedAt: new Date(Number(enqueuedMs)).toISOString(),
        grantedAt: grantedMs === '' ? null : new Date(Number(grantedMs)).toISOString(),
        position: state === 'w' ? position : null,
      }),
    ),
  }
}

export async function showMetrics(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  await parts.refreshLeaseGauges()
  ctx.type = parts.metrics.contentType
  ctx.body = await parts.metrics.text()
}

export async function live(ctx: RouteContext): Promise<void> {
  ctx.body = 'ok\n'
}

/**
 * Whether new requests should come here. An outage of Redis is told but does not make a replica
 * unready: it hits all replicas alike, and running streams need the gateway.
 */
export async function ready(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  const draining = parts.draining.aborted
  ctx.status = draining ? 503 : 200
  ctx.body = { ready: !draining, draining, schedulerReachable: parts.downloads.leases.reachable }
}
