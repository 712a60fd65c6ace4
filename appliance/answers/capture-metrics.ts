/** Metrics of the recorder and the store, as of the last second. */
import type { Metrics } from '../../src/shared/base/metrics.ts'
import { nowNs } from '../appliance-parts.ts'
import type { CaptureReport, PortReport, RetentionReport } from '../link/capture-report.ts'
import { isCapturing, type StoredTotals } from '../system-status/capture-group.ts'

export interface CaptureReadings {
  /** undefined = no recorder answers. */
  readonly capture: { readonly value: CaptureReport | undefined }
  /** undefined = the store cannot be read. */
  readonly stored: { readonly value: StoredTotals | undefined }
}

type Row<Source> = readonly [name: string, help: string, figure: (source: Source) => bigint | number]

/** Counted from the start of the running capture. */
const PORT_TOTALS: readonly Row<PortReport>[] = [
  ['seen_packets_total', 'Packets that the kernel offered', (port) => port.seenPackets],
  ['seen_bytes_total', 'Original lengths of the packets that arrived', (port) => port.seenBytes],
  ['stored_packets_total', 'Packets written', (port) => port.storedPackets],
  ['stored_bytes_total', 'Bytes written, as PCAP records', (port) => port.storedBytes],
  ['filtered_packets_total', 'Packets that the capture filter dropped', (port) => port.filteredPackets],
  ['fcs_errors_total', 'Packets with a wrong frame check sequence', (port) => port.fcsErrors],
]

const PORT_GAUGES: readonly Row<PortReport>[] = [
  ['pending_packets', 'Packets in memory that are not written yet', (port) => port.pendingPackets],
  ['port_up', 'Whether the interface has a link', (port) => Number(port.isUp)],
  [
    'last_packet_timestamp_seconds',
    'Time of the newest packet; 0 = none',
    (port) => inSeconds(port.lastPacketNs),
  ],
]

const CAPTURE_GAUGES: readonly Row<CaptureReport>[] = [
  ['active', 'Whether a capture runs', (report) => Number(isCapturing(report))],
  ['failing', 'Whether a capture should run but cannot', (report) => Number(report.state === 'error')],
  [
    'flushed_timestamp_seconds',
    'Packets before this time can be downloaded; 0 = none',
    (report) => inSeconds(report.counts.flushedNs),
  ],
  [
    'flushed_lag_seconds',
    'How far capfleet_capture_flushed_timestamp_seconds lags behind the clock while a capture runs',
    lagSeconds,
  ],
]

const RETENTION_GAUGES: readonly Row<RetentionReport>[] = [
  [
    'min_free_bytes',
    'Bytes that retention keeps free: retention.minFreeBytes, or two seconds of the capture rate if that is more',
    (retention) => retention.minFreeBytes,
  ],
  [
    'failing',
    'Whether retention cannot remove what it must; Message of capture_status has the reason',
    (retention) => Number(retention.problem !== ''),
  ],
]

const STORE_GAUGES: readonly Row<StoredTotals>[] = [
  ['captures', 'Captures in the store', (totals) => totals.captures],
  ['damaged_captures', 'Captures of the store that are damaged', (totals) => totals.damaged],
  ['packets', 'Packets in the store', (totals) => totals.packets],
  ['bytes', 'Bytes of packets in the store', (totals) => totals.bytes],
  [
    'oldest_packet_timestamp_seconds',
    'Time of the oldest packet; 0 = none',
    (totals) => inSeconds(totals.oldestNs),
  ],
]

/** Without a recorder there is only recorder_up 0: unknown values are absent, not 0. */
export function registerCaptureMetrics(metrics: Metrics, { capture, stored }: CaptureReadings): void {
  metrics.figures('recorder_up', 'Whether the recorder answers', [], (set) =>
    set(Number(capture.value !== undefined)),
  )
  metrics.figures(
    'recorder_clock_trusted',
    'Whether the recorder trusts its clock; 0: nothing is removed because of its age',
    [],
    (set) => {
      if (capture.value !== undefined) set(Number(capture.value.clockHold === ''))
    },
  )
  for (const [name, help, figure] of CAPTURE_GAUGES) {
    metrics.figures(`capture_${name}`, help, [], (set) => {
      if (capture.value !== undefined) set(Number(figure(capture.value)))
    })
  }
  for (const [name, help, figure] of STORE_GAUGES) {
    metrics.figures(`store_${name}`, help, [], (set) => {
      if (stored.value !== undefined) set(Number(figure(stored.value)))
    })
  }
  for (const [name, help, figure] of RETENTION_GAUGES) {
    metrics.figures(`retention_${name}`, help, [], (set) => {
      const retention = capture.value?.retention
      if (retention !== undefined) set(Number(figure(retention)))
    })
  }
  registerPorts(metrics, () => capture.value?.counts)
}

function registerPorts(metrics: Metrics, read: () => CaptureReport['counts'] | undefined): void {
  const ports = (): readonly PortReport[] => read()?.ports ?? []
  for (const [name, help, figure] of PORT_TOTALS) {
    metrics.totals(`capture_${name}`, help, ['port'], (set) => {
      for (const port of ports()) set(Number(figure(port)), { port: nameOf(port) })
    })
  }
  for (const [name, help, figure] of PORT_GAUGES) {
    metrics.figures(`capture_${name}`, help, ['port'], (set) => {
      for (const port of ports()) set(Number(figure(port)), { port: nameOf(port) })
    })
  }
  const help = 'Packets lost because the kernel ring was full (ring) or the write buffer was full (disk)'
  metrics.totals('capture_dropped_packets_total', help, ['port', 'cause'], (set) => {
    for (const port of ports()) {
      set(Number(port.ringDrops), { port: nameOf(port), cause: 'ring' })
      set(Number(port.diskDrops), { port: nameOf(port), cause: 'disk' })
    }
  })
  metrics.figures('capture_pending_bytes', 'Bytes in memory that are not written yet', [], (set) => {
    const counts = read()
    if (counts !== undefined) set(Number(counts.pendingBytes))
  })
  metrics.totals('capture_disk_errors_total', 'Writes that failed', [], (set) => {
    const counts = read()
    if (counts !== undefined) set(Number(counts.diskErrors))
  })
}

function nameOf({ port }: PortReport): string {
  return `cap${port}`
}

const NANOS_PER_SECOND = 1e9

function inSeconds(ns: bigint): number {
  return Number(ns) / NANOS_PER_SECOND
}

function lagSeconds(report: CaptureReport): number {
  const { flushedNs } = report.counts
  const now = nowNs()
  return isCapturing(report) && flushedNs > 0n && flushedNs < now ? inSeconds(now - flushedNs) : 0
}
