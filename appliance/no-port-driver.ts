import type { CaptureCounts, CaptureDriver } from './capture-driver.ts'

const NOTHING: CaptureCounts = {
  packets: 0n,
  bytes: 0n,
  drops: 0n,
  fcsErrors: 0n,
  lastPacketNs: 0n,
  flushedNs: 0n,
  bitsPerSecond: 0,
  packetsPerSecond: 0,
  ports: [],
}

/**
 * The driver of a device without capture ports. A capture can be started and stopped, as with a
 * cable that is not plugged in, and stays empty; answers and records say so.
 */
export const noPortDriver: CaptureDriver = {
  ports: [],
  start: () => Promise.resolve(),
  stop: () => Promise.resolve({ streams: [] }),
  counts: () => NOTHING,
}
