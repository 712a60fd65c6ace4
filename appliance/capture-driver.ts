import type { StreamRecord } from './capture-record.ts'

/** Figures of the running capture. */
export interface CaptureCounts {
  readonly packets: bigint
  /** Captured bytes, as PCAP records. */
  readonly bytes: bigint
  /** Packets that came but could not be kept. */
  readonly drops: bigint
  /** Packets with a wrong frame check sequence. */
  readonly fcsErrors: bigint
  /** 0 = no packet yet. */
  readonly lastPacketNs: bigint
  /** Every packet before this time can be downloaded. */
  readonly flushedNs: bigint
  readonly bitsPerSecond: number
  readonly packetsPerSecond: number
  readonly ports: readonly PortCounts[]
}

export interface PortCounts {
  readonly port: number
  readonly packets: bigint
  readonly bytes: bigint
}

export interface CaptureTarget {
  /** Full name of the capture. */
  readonly name: string
  /** Its folder; the driver writes cap<port>/ in it and nothing else. */
  readonly folder: string
}

/**
 * What puts packets of the capture ports into a capture's folder. Used by one CaptureControl, one
 * capture at a time.
 */
export interface CaptureDriver {
  /** Capture ports that it reads; none = every capture stays empty. */
  readonly ports: readonly number[]
  /**
   * Begins to capture, or goes on with a capture that an earlier recorder began. When it cannot
   * go on later it calls `onFailure` once. Rejects when it cannot begin.
   */
  start(target: CaptureTarget, onFailure: (error: Error) => void): Promise<void>
  /** Ends the capture: everything is on the disk then. Also after a failure, and again. */
  stop(): Promise<{ readonly streams: readonly StreamRecord[] }>
  counts(): CaptureCounts
}
