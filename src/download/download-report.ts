/** What became of a download: the body of its receipt, and the source of its trailers. */
import type { ErrorCode } from '../base/error.ts'

/**
 * complete: every packet asked for. truncated: ended at MaxBytes or MaxPackets, `nextNs` is the
 * first packet left out. partial: devices are missing (OnError=partial). failed: cut after the first
 * byte, or refused before it. client-gone: the client left first. streaming: it still runs.
 */
export type DownloadStatus = 'streaming' | 'complete' | 'truncated' | 'partial' | 'failed' | 'client-gone'

export interface ReportedError {
  readonly code: ErrorCode
  readonly detail: string
}

/** One device's part. */
export interface DeviceReport {
  readonly device: string
  readonly status: 'complete' | 'truncated' | 'missing' | 'failed'
  /** Delivered packets; undefined when a relayed device did not tell. */
  readonly packets: bigint | undefined
  /** Body bytes of the device that went into the download. */
  readonly bytes: bigint
  readonly firstNs: bigint | undefined
  readonly lastNs: bigint | undefined
  /** How often the device was asked again after it broke off. */
  readonly retries: number
  readonly outOfOrder: number
  /** In a merge: the device vouches for packets in the order of time. */
  readonly isOrdered?: boolean
  /** How long the merge waited for this device alone. */
  readonly stalledMs: number
  /** Device clock minus gateway clock, and half the round trip that bounds the error. */
  readonly clockOffsetNs: bigint | undefined
  readonly clockErrorNs: bigint | undefined
  /** With OnError=partial: the half-open range whose packets of this device are missing. */
  readonly missing: { readonly fromNs: bigint; readonly toNs: bigint } | undefined
  readonly error: ReportedError | undefined
}
