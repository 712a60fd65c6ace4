import type { ParameterValues } from '../query-parameters.ts'
import type { DOWNLOAD_PARAMETERS } from './download-parameters.ts'

export type DownloadKind = 'single' | 'timerange' | 'splittime'

/** The values of the rows of a download's parameters, each under the name of its row. */
type OwnFields = Omit<ParameterValues<typeof DOWNLOAD_PARAMETERS>, 'filterPort'>

/** A download as requested: every value parsed and in range. */
export interface DownloadQuery extends OwnFields {
  readonly kind: DownloadKind
  /** Half-open [beginNs, endNs), by the capture hardware's time; for single, everything that PCAP can represent. */
  readonly beginNs: bigint
  readonly endNs: bigint
  /**
   * Local times as written, if they refer to the device's zone and that is unknown here; beginNs and endNs are then
   * the earliest and latest possible.
   */
  readonly localTimes?: { readonly begin: string | undefined; readonly end: string | undefined } | undefined
  /**
   * The unit in which TSBegin and TSEnd were read, for the Capfleet-TS-Unit header: nanos, usecs, msecs, sec or
   * YYYYMMDD_HHMMSS; both ("sec, nanos") if they differ; undefined for "now", "-15m" and RFC 3339, and without
   * TSBegin.
   */
  readonly timeUnit: string | undefined
  /** IANA name of the zone in which local times without TSZone were read, for the Capfleet-Time-Zone header. */
  readonly timeZone?: string
  /** TSMode as written, if the device decides what it means; timeSource is then only a guess. */
  readonly timeSourceWord?: string
  /**
   * BPF filters that the caller's packets must pass in addition to their own; each stays within parentheses around it.
   */
  readonly forcedFilters: readonly string[]
  /** How many captures the range may reach into: 2 on the legacy /pcap/timerange, else unlimited. */
  readonly capturesMax: number | undefined
  /** Unknown parameters, for the Capfleet-Ignored header (empty with Strict=1: they are an error). */
  readonly ignored: readonly string[]
}
