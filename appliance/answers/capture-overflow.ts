import type { CaptureCounts } from '../link/capture-report.ts'

export interface Overflow {
  readonly bytes: number
  /** Bytes in the last second. */
  readonly bytesNow: number
}

/**
 * Packets that arrived and were not written to disk in time. They are counted but not measured: each is assumed to
 * have the mean length of those that were stored.
 */
export function captureOverflow(counts: CaptureCounts | undefined): Overflow {
  if (counts === undefined || counts.diskDrops === 0n) return { bytes: 0, bytesNow: 0 }
  const packets = counts.ports.reduce((sum, { seenPackets, ringDrops }) => sum + seenPackets - ringDrops, 0n)
  const bytes = counts.ports.reduce((sum, { seenBytes }) => sum + seenBytes, 0n)
  const mean = packets > 0n ? Number(bytes) / Number(packets) : 0
  return {
    bytes: Math.round(Number(counts.diskDrops) * mean),
    bytesNow: Math.round(counts.diskDropsPerSecond * mean),
  }
}
