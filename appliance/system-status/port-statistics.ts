/** /api/v1/system/port_stats (API section 2.4). */
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { takeNoParameters } from '../finish-parameters.ts'
import { CAPTURE_LINK_IDS } from './link-sensor.ts'
import { describePorts } from './port-config.ts'

/** RMON counters; the kernel does not count packets by size. */
const SIZE_CLASSES = [
  'Pkt_RUNT',
  'Pkt_64',
  'Pkt_65_127',
  'Pkt_128_255',
  'Pkt_256_511',
  'Pkt_512_1023',
  'Pkt_1024_1518',
  'Pkt_1024_2047',
  'Pkt_2048_4095',
  'Pkt_4096_8191',
  'Pkt_8192_9216',
  'Pkt_OVER',
] as const

/** `unavailable` names what is no reading, as "cap0.Pkt_64". */
export async function answerPortStatistics(
  { sensors }: ApplianceParts,
  ctx: ApplianceContext,
): Promise<void> {
  takeNoParameters(ctx)
  const links = sensors.links.value
  const unavailable: string[] = []
  const ports = CAPTURE_LINK_IDS.map((id) => {
    const link = links?.get(id)
    const counter = (name: string, value: number | undefined): [string, number] => {
      if (value === undefined) unavailable.push(`${id}.${name}`)
      return [name, value ?? 0]
    }
    const counters = [
      counter('Pkt', link?.packets),
      counter('Byte', link?.bytes),
      ...SIZE_CLASSES.map((name) => counter(name, undefined)),
    ]
    return [id, Object.fromEntries(counters)] as const
  })
  ctx.set('Cache-Control', 'no-store')
  ctx.body = { ...Object.fromEntries(ports), port_config: describePorts(links), unavailable }
}
