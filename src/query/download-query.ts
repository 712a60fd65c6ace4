import type { FrameCondition } from './frame-filter.ts'
import type { Compression } from './query-values.ts'
import type { TimeSource } from './time-source.ts'

export type DownloadKind = 'single' | 'timerange' | 'splittime'

/** A download as asked for: every value parsed and in range. */
export interface DownloadQuery {
  readonly kind: DownloadKind
  /** Present for single and splittime. A full name, or a base name that means its newest capture. */
  readonly captureName: string | undefined
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
  /** How many captures the range may reach into: 2 on the legacy /pcap/timerange, else unlimited. */
  readonly capturesMax: number | undefined
  readonly filterBpf: string | undefined
  /** Whether filterBpf looks at the innermost packet of a tunnel. */
  readonly filterDecap: boolean
  /** FilterFrame and FilterPort: all must hold; empty = every packet. */
  readonly frameFilter: readonly FrameCondition[]
  readonly filterRegex: string | undefined
  /** Go on with packets of the range that are recorded after the request came. Only in NIC time. */
  readonly follow: boolean
  readonly timeSource: TimeSource
  /** TSMode as it was written, where it is for the device to say what it means; timeSource is then no more than a guess. */
  readonly timeSourceWord?: string
  readonly tsMaxNs: bigint | undefined
  /** Largest body before compression, file header included; it ends with a whole record. */
  readonly maxBytes: bigint | undefined
  readonly maxPackets: bigint | undefined
  /**
   * The body begins with this byte of what it would be without compression; undefined = its first.
   * Who goes on with an earlier download so must see to it that the store has not changed: packets
   * that were removed since, or came late, move all that follow.
   */
  readonly afterBytes: bigint | undefined
  readonly sliceBytes: number | undefined
  readonly timeResolution: 'nsec' | 'usec'
  readonly compression: Compression
  /** How long to wait for a download slot; undefined = the program's default. */
  readonly waitS: number | undefined
  /** Unknown parameters, for the Capfleet-Ignored header (empty with Strict=1: they are an error). */
  readonly ignored: readonly string[]
}
