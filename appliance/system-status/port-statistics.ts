/** /api/v1/system/port_stats. */

import { SIZE_CLASSES } from '../../native/live-capture.ts'
import { takeNoParameters } from '../../src/shared/contract/request-parameters.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import type { PortReport } from '../link/capture-report.ts'
import { CAPTURE_LINK_IDS, type Link } from '../machine/link-sensor.ts'
import { toExactJson } from './exact-json.ts'
import { describePorts } from './link-group.ts'

type Counters = readonly (readonly [name: string, value: bigint | number | undefined])[]

/**
 * `unavailable` lists what is not a reading, as "cap0.Pkt_64". `accounting` has the ports of the running capture, for
 * which Seen is the sum of the others.
 */
export async function answerPortStatistics(
  ctx: ApplianceContext,
  { sensors }: ApplianceParts,
): Promise<void> {
  takeNoParameters(ctx)
  const links = sensors.links.value
  const captured = sensors.capture.value?.counts.ports ?? []
  const unavailable: string[] = []
  const ports = CAPTURE_LINK_IDS.map((id, index) => {
    const figures = captured.find(({ port }) => port === index)
    const counters = figures === undefined ? linkCounters(links?.get(id)) : captureCounters(figures)
    const missing = counters.filter(([, value]) => value === undefined)
    unavailable.push(...missing.map(([name]) => `${id}.${name}`))
    return [id, Object.fromEntries(counters.map(([name, value = 0]) => [name, value]))]
  })
  ctx.set('Cache-Control', 'no-store')
  ctx.type = 'json'
  ctx.body = toExactJson({
    ...Object.fromEntries(ports),
    port_config: describePorts(links),
    accounting: Object.fromEntries(captured.map((figures) => [`cap${figures.port}`, accountOf(figures)])),
    unavailable,
  })
}

/** Since the start of the running capture. */
function captureCounters({ seenPackets, seenBytes, sizeClasses }: PortReport): Counters {
  return [
    ['Pkt', seenPackets],
    ['Byte', seenBytes],
    ...SIZE_CLASSES.map((name, index) => [`Pkt_${name}`, sizeClasses[index]] as const),
  ]
}

/** What happened to the packets that the kernel delivered. */
function accountOf(figures: PortReport): Readonly<Record<string, bigint>> {
  return {
    Seen: figures.seenPackets,
    Stored: figures.storedPackets,
    Filtered: figures.filteredPackets,
    DropRing: figures.ringDrops,
    DropDisk: figures.diskDrops,
    Pending: figures.pendingPackets,
  }
}

/** For a port that is not captured: the kernel's counters, which are not by size. */
function linkCounters(link: Link | undefined): Counters {
  return [
    ['Pkt', link?.packets],
    ['Byte', link?.bytes],
    ...SIZE_CLASSES.map((name) => [`Pkt_${name}`, undefined] as const),
  ]
}
