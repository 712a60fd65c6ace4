import type { StreamSummary } from '../../native/import-capture-files.ts'
import type { LiveCounts } from '../../native/live-capture.ts'

export interface CaptureTarget {
  /** Full name of the capture. */
  readonly name: string
  /** Its folder; the driver writes cap<port>/ in it and nothing else. */
  readonly folder: string
  /** By port, the highest number that a segment of the capture has had. */
  readonly lastNumbers: ReadonlyMap<number, number>
}

/**
 * What puts packets of the capture ports into a capture's folder. Used by one CaptureControl, one
 * capture at a time. A capture that has begun goes on whatever happens to disk and ports: drops and
 * errors are counted.
 */
export interface CaptureDriver {
  /** Capture ports that it reads; none = every capture stays empty. */
  readonly ports: readonly number[]
  /** Begins to capture, behind the segments that are there. Fails with capture-unavailable. */
  start(target: CaptureTarget): Promise<void>
  /** Packets go to another capture from one moment on. Segments of the one before that takeFinished() did not return, on the disk. */
  roll(target: CaptureTarget): Promise<readonly StreamSummary[]>
  /** Ends the capture: everything is on the disk then. Returns segments as roll() does. May be called again, and answers the same. */
  stop(): Promise<readonly StreamSummary[]>
  /** Segments of the running capture that have finished since the last call, and maybe earlier ones again. */
  takeFinished(): readonly StreamSummary[]
  /** Since start(), rolls included. */
  counts(): LiveCounts
}

/**
 * The driver of a device without capture ports. A capture can be started and stopped, as with a
 * cable that is not plugged in, and stays empty; answers and records say so.
 */
export const noPortDriver: CaptureDriver = {
  ports: [],
  start: () => Promise.resolve(),
  roll: () => Promise.resolve([]),
  stop: () => Promise.resolve([]),
  takeFinished: () => [],
  counts: () => ({ ports: [], flushedNs: 0n, pendingBytes: 0n, diskErrors: 0n, diskMessage: '' }),
}
