/** Group "capture" of the system status: the running capture, and what is stored. */
import type { CaptureReport } from '../link/capture-report.ts'
import { GroupBuilder, type StatusGroup } from './status-group.ts'

export interface StoredTotals {
  readonly captures: number
  /** Captures in state "damaged" of the list. */
  readonly damaged: number
  readonly packets: bigint
  readonly bytes: bigint
  /** 0 = nothing is stored. */
  readonly oldestNs: bigint
}

const PORTS = 8 // fixed by the API
const BITS_PER_GB = 1e9
const PACKETS_PER_MEGA = 1e6

/** `report` is undefined if no recorder is running; `stored` if the store cannot be read. */
export function captureGroup(
  report: CaptureReport | undefined,
  stored: StoredTotals | undefined,
): StatusGroup {
  const counts = report?.counts
  const hasPorts = report !== undefined && report.ports.length > 0
  const group = new GroupBuilder()
    .read('CaptureEnb', report && isCapturing(report), false)
    .read('CapturePkt', counts?.packets, 0)
    .read('CaptureByte', counts?.bytes, 0)
    .read('CaptureDrop', hasPorts ? counts?.drops : undefined, 0)
    .read('CaptureDropRing', hasPorts ? counts?.ringDrops : undefined, 0)
    .read('CaptureDropDisk', hasPorts ? counts?.diskDrops : undefined, 0)
    .read('CapturePending', hasPorts ? counts?.pendingPackets : undefined, 0)
    .read('CaptureFCSError', hasPorts ? counts?.fcsErrors : undefined, 0)
    .read('CaptureRateGbps', counts && counts.bitsPerSecond / BITS_PER_GB, 0)
    .read('CaptureRateMpps', counts && counts.packetsPerSecond / PACKETS_PER_MEGA, 0)
    .read('CaptureName', report?.name, '')
    .read('CaptureState', report?.state, '')
    .read('CaptureMessage', report?.message, '')
    .read('StoredCaptureCnt', stored?.captures, 0)
    .read('StoredPkt', stored?.packets, 0)
    .read('StoredByte', stored?.bytes, 0)
  for (let port = 0; port < PORTS; port++) {
    const found = counts?.ports.find((entry) => entry.port === port)
    group.read(`CapturePort${port}_Byte`, found?.bytes, 0)
    group.read(`CapturePort${port}_Pkt`, found?.packets, 0)
  }
  return group.build()
}

/** Whether packets are being stored, or will be in a moment. */
export function isCapturing({ state }: CaptureReport): boolean {
  return state === 'starting' || state === 'running' || state === 'rolling'
}
