import type { StreamSummary } from '../../../native/import-capture-files.ts'
import type { LiveCounts } from '../../../native/live-capture.ts'

export interface CaptureTarget {
  /** Full name of the capture. */
  readonly name: string
  /** Its folder; the driver only writes cap<port>/ in it. */
  readonly folder: string
  /** The highest number that a segment of the capture has had, by port. */
  readonly lastNumbers: ReadonlyMap<number, number>
}

/**
 * Writes packets of the capture ports to a capture's folder. Used by one CaptureControl, for one capture at a time. A
 * started capture continues whatever happens to disk and ports: drops and errors are counted.
 */
export interface CaptureDriver {
  /** Capture ports that it reads; none = every capture stays empty. */
  readonly ports: readonly number[]
  /** Starts to capture, after the existing segments. Fails with capture-unavailable. */
  start(target: CaptureTarget): Promise<void>
  /**
   * Packets are written to another capture from one moment on. Returns segments of the previous one that
   * takeFinished() has not returned, flushed to disk.
   */
  roll(target: CaptureTarget): Promise<readonly StreamSummary[]>
  /**
   * Ends the capture, with everything flushed to disk. Returns segments like roll(). May be called again, with the
   * same result.
   */
  stop(): Promise<readonly StreamSummary[]>
  /** Segments of the running capture that have finished since the last call, possibly including earlier ones. */
  takeFinished(): readonly StreamSummary[]
  /** Since start(), rolls included. */
  counts(): LiveCounts
}

/**
 * The driver of a device without capture ports. A capture can be started and stopped, as when no cable is plugged in,
 * and stays empty; answers and records say so.
 */
export const noPortDriver: CaptureDriver = {
  ports: [],
  start: () => Promise.resolve(),
  roll: () => Promise.resolve([]),
  stop: () => Promise.resolve([]),
  takeFinished: () => [],
  counts: () => ({ ports: [], flushedNs: 0n, pendingBytes: 0n, diskErrors: 0n, diskMessage: '' }),
}
