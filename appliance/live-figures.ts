import type { CaptureReport } from './capture-report.ts'

/** Figures of one capture port since the start of the running capture. */
export interface PortFigures {
  readonly port: number
  readonly seenPackets: bigint
  readonly storedPackets: bigint
  readonly storedBytes: bigint
  readonly seenBytes: bigint
  readonly filteredPackets: bigint
  readonly ringDrops: bigint
  readonly diskDrops: bigint
  readonly pendingPackets: bigint
  readonly fcsErrors: bigint
  /** 0 = no packet yet. */
  readonly lastPacketNs: bigint
  /** In the order of the API's port statistics. */
  readonly sizeClasses: readonly bigint[]
  readonly isUp: boolean
}

export interface LiveFigures {
  readonly ports: readonly PortFigures[]
  readonly flushedNs: bigint
  readonly pendingBytes: bigint
  readonly diskErrors: bigint
}

type LiveCounts = Partial<Omit<LiveFigures, 'ports'>> &
  Pick<LiveFigures, 'flushedNs'> & { readonly ports: readonly object[] }

/** What the recorder's report says of the ports that it reads; none without such ports. */
export function liveFiguresOf(report: CaptureReport | undefined): LiveFigures | undefined {
  if (report === undefined) return undefined
  const counts: LiveCounts = report.counts
  const { flushedNs, pendingBytes = 0n, diskErrors = 0n } = counts
  return { ports: counts.ports.filter(isLive), flushedNs, pendingBytes, diskErrors }
}

function isLive(port: object): port is PortFigures {
  return 'sizeClasses' in port
}
