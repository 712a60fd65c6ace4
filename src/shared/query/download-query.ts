import type { DOWNLOAD_PARAMETERS } from './download-parameters.ts'
import type { ParameterValues } from './query-parameters.ts'

export type DownloadKind = 'single' | 'timerange' | 'splittime'

/** What the rows of a download's parameters give, each under the name of its row. */
type OwnFields = Omit<ParameterValues<typeof DOWNLOAD_PARAMETERS>, 'filterPort'>

/** A download as asked for: every value parsed and in range. */
export interface DownloadQuery extends OwnFields {
  readonly kind: DownloadKind
  /** Half-open [beginNs, endNs), by the capture hardware's time; for single everything that PCAP can carry. */
  readonly beginNs: bigint
  readonly endNs: bigint
  /**
   * Local times as they were written, where the device's zone counts and is not known here; beginNs and endNs are
   * then the first and the last that there may be.
   */
  readonly localTimes?: { readonly begin: string | undefined; readonly end: string | undefined } | undefined
  /**
   * Which unit TSBegin and TSEnd were read in, for the Capfleet-TS-Unit header: nanos, usecs, msecs,
   * sec or YYYYMMDD_HHMMSS; both ("sec, nanos") where they differ; undefined for "now", "-15m" and
   * RFC 3339, and where there is no TSBegin.
   */
  readonly timeUnit: string | undefined
  /** IANA name of the zone in which local times without TSZone were read, for the Capfleet-Time-Zone header. */
  readonly timeZone?: string
  /** TSMode as it was written, where it is for the device to say what it means; timeSource is then no more than a guess. */
  readonly timeSourceWord?: string
  /** BPF filters that the caller's packets must pass beside their own; each stays within parentheses around it. */
  readonly forcedFilters: readonly string[]
  /** How many captures the range may reach into: 2 on the legacy /pcap/timerange, else unlimited. */
  readonly capturesMax: number | undefined
  /** Unknown parameters, for the Capfleet-Ignored header (empty with Strict=1: they are an error). */
  readonly ignored: readonly string[]
}
