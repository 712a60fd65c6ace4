import type { Compression } from './query-values.ts'

export type DownloadKind = 'single' | 'timerange' | 'splittime'

/** A download as asked for: every value parsed and in range. */
export interface DownloadQuery {
  readonly kind: DownloadKind
  /** Present for single and splittime. A full name, or a base name that means its newest capture. */
  readonly captureName: string | undefined
  /** Half-open [beginNs, endNs); for single everything that PCAP can carry. */
  readonly beginNs: bigint
  readonly endNs: bigint
  /**
   * Which unit TSBegin and TSEnd were read in, for the Capfleet-TS-Unit header: nanos, usecs, msecs,
   * sec or YYYYMMDD_HHMMSS; both ("sec, nanos") where they differ; undefined for "now", "-15m" and
   * RFC 3339, and where there is no TSBegin.
   */
  readonly timeUnit: string | undefined
  readonly filterBpf: string | undefined
  readonly tsMaxNs: bigint | undefined
  readonly sliceBytes: number | undefined
  readonly timeResolution: 'nsec' | 'usec'
  readonly compression: Compression
  /** How long to wait for a download slot; undefined = the program's default. */
  readonly waitS: number | undefined
  /** Unknown parameters, for the Capfleet-Ignored header (empty with Strict=1: they are an error). */
  readonly ignored: readonly string[]
}
