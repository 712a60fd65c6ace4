/** /sysmaster/status: the capture as CSV text. */
import { SYSMASTER_STATUS_PARAMETERS } from '../../src/shared/contract/device-parameters.ts'
import { takeParameters } from '../../src/shared/contract/request-parameters.ts'
import type { ApplianceContext, ApplianceParts } from '../appliance-parts.ts'
import { CAPTURE_LINK_IDS } from '../machine/link-sensor.ts'
import { isCapturing } from '../system-status/capture-group.ts'
import { droppedPackets, sumPortCounters } from '../system-status/port-counters.ts'
import { captureOverflow } from './capture-overflow.ts'
import { uptimeText } from './uptime-text.ts'

type Row = readonly [key: string, value: string | number | bigint | boolean]

/** Values are padded to a column of this width. */
const VALUE_WIDTH = 24

/** `Header=1` adds a first line with the names of the columns. Without a recorder the figures are 0. */
export async function answerSysmasterStatus(ctx: ApplianceContext, parts: ApplianceParts): Promise<void> {
  const { hasHeader } = takeParameters(ctx, SYSMASTER_STATUS_PARAMETERS)
  await parts.sensors.stored.refresh()
  const rows = [...(hasHeader ? [['key', 'value'] as const] : []), ...totalRows(parts), ...portRows(parts)]
  const lines = [...rows, ...captureRows(parts)].map(
    ([key, value]) => `${key},${String(value).padStart(VALUE_WIDTH)}\n`,
  )
  ctx.set('Cache-Control', 'no-store')
  ctx.type = 'text/csv'
  ctx.body = lines.join('')
}

function totalRows({ sensors }: ApplianceParts): Row[] {
  const counters = sumPortCounters(sensors.links.value)
  const counts = sensors.capture.value?.counts
  const overflow = captureOverflow(counts)
  return [
    ...uptimeRows('uptime', sensors.host.value?.uptimeSeconds ?? 0),
    ['packets_received', counters?.received ?? 0],
    ['packets_dropped', droppedPackets(sensors.capture.value, counters) ?? 0],
    ['packets_errors', counters?.errors ?? 0],
    ['packets_captured', counts?.packets ?? 0],
    ['bytes_captured', counts?.bytes ?? 0],
    ['bytes_pending', counts?.pendingBytes ?? 0],
    ['bytes_disk', sensors.stored.value?.bytes ?? 0],
    ['bytes_overflow', overflow.bytes],
    ['bytes_overflow_now', overflow.bytesNow],
  ]
}

/** Text for people, plus whole seconds for scripts. */
function uptimeRows(key: string, seconds: number): Row[] {
  return [
    [key, uptimeText(seconds)],
    [`${key}_s`, Math.floor(seconds)],
  ]
}

function portRows({ sensors }: ApplianceParts): Row[] {
  return CAPTURE_LINK_IDS.flatMap((id, port): Row[] => {
    const link = sensors.links.value?.get(id)
    return [
      [`capture${port}_link`, link?.isUp === true ? 'up' : 'down'],
      ...uptimeRows(`capture${port}_link_uptime`, link?.upSeconds ?? 0),
      [`capture${port}_link_speed`, link?.speedMbps ?? 0],
    ]
  })
}

function captureRows({ sensors }: ApplianceParts): Row[] {
  const report = sensors.capture.value
  return [
    ['capture_bytes', report?.counts.bytes ?? 0],
    ['capture_packets', report?.counts.packets ?? 0],
    ['capture_bps', report?.counts.bitsPerSecond ?? 0],
    ['capture_pps', report?.counts.packetsPerSecond ?? 0],
    ['capture_name', report?.name ?? ''],
    ['capture_active', report !== undefined && isCapturing(report)],
  ]
}
