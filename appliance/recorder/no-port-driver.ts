import type { CaptureDriver } from './capture-driver.ts'

/**
 * The driver of a device without capture ports. A capture can be started and stopped, as with a
 * cable that is not plugged in, and stays empty; answers and records say so.
 */
export const noPortDriver: CaptureDriver = {
  ports: [],
  start: () => Promise.resolve(),
  roll: () => Promise.resolve([]),
  stop: () => Promise.resolve([]),
  finished: () => [],
  counts: () => ({ ports: [], flushedNs: 0n, pendingBytes: 0n, diskErrors: 0n, diskMessage: '' }),
}
