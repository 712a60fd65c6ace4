import type { CaptureReport } from '../link/capture-report.ts'
import { CAPTURE_LINK_IDS, type Link, type LinkId } from '../machine/link-sensor.ts'

export interface PortCounters {
  readonly received: number
  readonly dropped: number
  readonly errors: number
}

/** The kernel's counters of all capture ports, or undefined without such a port. */
export function sumPortCounters(links: ReadonlyMap<LinkId, Link> | undefined): PortCounters | undefined {
  const ports = CAPTURE_LINK_IDS.flatMap((id) => links?.get(id) ?? [])
  if (ports.length === 0) return undefined
  return {
    received: ports.reduce((sum, { packets }) => sum + (packets ?? 0), 0),
    dropped: ports.reduce((sum, { drops }) => sum + (drops ?? 0), 0),
    errors: ports.reduce((sum, { errors }) => sum + (errors ?? 0), 0),
  }
}

/** From the running capture if the device has capture ports; else from the kernel's counters. */
export function droppedPackets(
  report: CaptureReport | undefined,
  counters: PortCounters | undefined,
): number | bigint | undefined {
  return report !== undefined && report.ports.length > 0 ? report.counts.drops : counters?.dropped
}
