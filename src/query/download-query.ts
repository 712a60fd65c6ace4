import type { Compression } from './query-values.ts'

export type DownloadKind = 'single' | 'timerange' | 'splittime'

/** A download as asked for: every value parsed and in range. */
export interface DownloadQuery {
  readonly kind: DownloadKind
  /** Present for single and splittime. */
  readonly captureName: string | undefined
  /** Half-open [beginNs, endNs); for single everything that PCAP can carry. */
  readonly beginNs: bigint
  readonly endNs: bigint
  /** Which unit TSBegin and TSEnd were read in; for the Capfleet-TS-Unit header. */
  readonly timeUnit: 'nanos' | 'usecs' | 'msecs' | 'sec' | 'YYYYMMDD_HHMMSS' | undefined
  readonly filterBpf: string | undefined
  readonly tsMaxNs: bigint | undefined
  readonly sliceBytes: number | undefined
  readonly timeResolution: 'nsec' | 'usec'
  readonly compression: Compression
  /** Unknown parameters, for the Capfleet-Ignored header (empty with Strict=1: they are an error). */
  readonly ignored: readonly string[]
}
