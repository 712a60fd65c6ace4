/** The path of a download: for a capture, a part of one, or a time range of many devices. */
import { usageFailure } from './client-failure.ts'
import type { QueryPairs } from './gateway-client.ts'

export interface DownloadTarget {
  readonly path: string
  readonly query: QueryPairs
  /** The search that chose devices and range; absent: they were given. */
  readonly found?: FoundBy | undefined
}

export interface FoundBy {
  /** As it was asked, with relative times. */
  readonly search: QueryPairs
  /** Why packets may be missing, which the caller has accepted. */
  readonly incomplete?: string | undefined
}

const PATHS = {
  single: '/api/v1/pcap/single',
  splittime: '/api/v1/pcap/splittime',
  timerange: '/api/v1/pcap/timerange',
} as const

/** Parameters that select the time. */
const RANGE_NAMES: readonly string[] = ['TSBegin', 'TSEnd']
const PART_NAMES: readonly string[] = ['Start', 'Stop']

/** Fails with a ClientFailure if the parameters specify no download, or two. */
export function downloadTarget(captureName: string | undefined, query: QueryPairs): DownloadTarget {
  return { path: PATHS[downloadKind(captureName, query)], query: downloadQuery(captureName, query) }
}

/** The parameters of a download if the path does not determine its kind: in an estimate, an export. */
export function downloadQuery(captureName: string | undefined, query: QueryPairs): QueryPairs {
  downloadKind(captureName, query)
  return captureName === undefined ? query : [['StreamName', captureName], ...query]
}

function downloadKind(captureName: string | undefined, query: QueryPairs): keyof typeof PATHS {
  const has = (names: readonly string[]) => query.some(([name]) => names.includes(name))
  if (captureName === undefined) {
    if (has(PART_NAMES))
      throw usageFailure(
        '--start and --stop select a part of a capture: name the capture; for a time range of devices use --begin and --end',
      )
    if (has(RANGE_NAMES)) return 'timerange'
    throw usageFailure('name a capture, or give a time range: --last 15m, or --begin and --end')
  }
  if (has(RANGE_NAMES)) {
    throw usageFailure(
      `${JSON.stringify(captureName)} is read as the name of a capture, which takes --start and --stop instead of --begin and --end; ` +
        "leave it out for a time range of devices (--device); a value with spaces needs quotation marks: --bpf 'host 10.1.2.3'",
    )
  }
  return has(PART_NAMES) ? 'splittime' : 'single'
}
