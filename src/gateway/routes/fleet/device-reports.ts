/** /v1/devices: what the gateway knows about its devices from their last probe, without asking any. */
import { takeNoParameters } from '../../../shared/contract/request-parameters.ts'
import type { FleetMember } from '../../fleet/fleet.ts'
import type { CaptureFigures } from '../../fleet/health/device-probe.ts'
import type { DeviceUse } from '../../lease/lease.ts'
import { isFiltered } from '../request/caller-bounds.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { FleetParts } from './fleet-parts.ts'

export async function showDevices(ctx: RouteContext, parts: FleetParts): Promise<void> {
  takeNoParameters(ctx)
  ctx.body = { devices: await reportsOf(parts.fleet.members, ctx, parts) }
}

export async function showDevice(ctx: RouteContext, parts: FleetParts): Promise<void> {
  takeNoParameters(ctx)
  const [report] = await reportsOf([parts.fleet.choose(ctx.params.device ?? '')], ctx, parts)
  ctx.body = report
}

async function reportsOf(
  members: readonly FleetMember[],
  ctx: RouteContext,
  parts: FleetParts,
): Promise<readonly unknown[]> {
  const names = members.map(({ device }) => device.name)
  const [use] = await Promise.all([
    // Even without the scheduler the health of the devices is worth reporting.
    parts.downloads.leases.use(names).catch(() => undefined),
    // This only waits in the first seconds of a gateway, or of a device.
    ...members.map(({ health }) => health.probedOnce),
  ])
  const reports = members.map((member, index) => reportOf(member, use?.[index], parts))
  return isFiltered(ctx) ? reports.map(uncounted) : reports
}

/** Without anything that depends on packets. */
function uncounted({ capture, ...report }: ReturnType<typeof reportOf>) {
  const { state, name } = capture ?? { state: null, name: null }
  return {
    ...report,
    oldestPacketNs: null,
    capture: capture && { state, name, gbps: null, mpps: null, drops: null },
    storeFreeBytes: null,
  }
}

/** Nanoseconds are decimal strings; null = unknown. */
function reportOf(
  { device, health, breaker }: FleetMember,
  use: DeviceUse | undefined,
  { limits }: FleetParts,
) {
  const { report } = health
  const { status } = report
  return {
    name: device.name,
    site: device.site ?? null,
    kind: device.kind ?? report.kind ?? null,
    url: device.url.href,
    reachable: report.reachable ?? null,
    since: report.since?.toISOString() ?? null,
    probedAt: report.probedAt?.toISOString() ?? null,
    probeMs: report.probeMs === undefined ? null : Math.round(report.probeMs * 1_000) / 1_000,
    error: report.error === undefined ? null : { code: report.error.code, detail: report.error.message },
    lacks: report.lacks,
    ignores: device.ignores ?? [],
    breaker: breaker.state,
    version: report.version ?? null,
    oldestPacketNs: report.oldestPacketNs?.toString() ?? null,
    clockOffsetNs: report.clock?.offsetNs.toString() ?? null,
    clockErrorNs: report.clock?.errorNs.toString() ?? null,
    ptp: status?.ptp === undefined ? null : { sync: status.ptp.sync, offsetNs: status.ptp.offsetNs ?? null },
    capture: status?.capture === undefined ? null : captureOf(status.capture),
    storeBytes: status?.storeBytes ?? null,
    storeFreeBytes: status?.storeFreeBytes ?? null,
    slotsTotal: limits.streamsPerDevice,
    slotsLimit: use?.limit ?? null,
    slotsUsed: use?.used ?? null,
    waiting: use?.waiting ?? null,
    readers: status?.readers ?? null,
  }
}

function captureOf({ state, name, gbps, mpps, drops }: CaptureFigures) {
  return {
    state: state ?? null,
    name: name ?? null,
    gbps: gbps ?? null,
    mpps: mpps ?? null,
    drops: drops ?? null,
  }
}
