import { joinFilters } from '../filter/joined-filter.ts'
import type { ParameterRows } from '../query-parameters.ts'
import { exactNs, rfc3339Of } from '../time/query-time.ts'
import { DOWNLOAD_PARAMETERS } from './download-parameters.ts'
import type { DownloadQuery } from './download-query.ts'
import { GATEWAY_PARAMETERS, type GatewayOptions } from './gateway-options.ts'

/**
 * The canonical query string (without "?") that requests the same packets from an appliance: times in nanoseconds,
 * defaults omitted. Parameters that do not affect the body, such as `waitS`, are up to the caller and not included;
 * `capturesMax` is expressed by the path (/pcap/ instead of /api/v1/pcap/).
 */
export function formatDownloadQuery(query: DownloadQuery): string {
  const { timeSourceWord, forcedFilters, filterBpf } = query
  const filtered = { ...query, filterBpf: joinFilters(forcedFilters, filterBpf) }
  const pairs = [
    ...formatRows(FIRST_ROWS, query),
    ...formatRange(query),
    ...formatRows(OTHER_ROWS, filtered),
    ...(timeSourceWord === undefined ? [] : [[DOWNLOAD_PARAMETERS.timeSource.name, timeSourceWord] as const]),
  ]
  return joined(pairs)
}

/** The options that affect the body, as a query string; defaults are omitted. */
export function formatGatewayOptions(options: Partial<GatewayOptions>): string {
  return joined(formatRows(GATEWAY_PARAMETERS, options))
}

const { captureName, ...OTHER_ROWS } = DOWNLOAD_PARAMETERS
const FIRST_ROWS = { captureName }

type Pair = readonly [name: string, value: string]

function joined(pairs: readonly Pair[]): string {
  return pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&')
}

function formatRows<Values extends object>(rows: ParameterRows, values: Values): Pair[] {
  return Object.entries(rows).flatMap(([field, row]): Pair[] => {
    const value = values[field as keyof Values]
    if (value === undefined || value === row.default || row.leavesBody === true) return []
    const text = row.type.write(value)
    return text === '' ? [] : [[row.name, text]]
  })
}

function formatRange({ kind, beginNs, endNs, localTimes }: DownloadQuery): Pair[] {
  if (kind === 'single') return []
  if (kind === 'splittime') {
    return [
      ['Start', exactNs(beginNs)],
      ['Stop', exactNs(endNs)],
    ]
  }
  if (localTimes !== undefined) {
    return [
      // Not a number, whose unit would be that of the local time.
      ['TSBegin', localTimes.begin ?? rfc3339Of(beginNs)],
      ['TSEnd', localTimes.end ?? rfc3339Of(endNs)],
      ...(localTimes.begin === undefined || localTimes.end === undefined
        ? []
        : [['TSUnit', LOCAL_TIME_UNIT] as const]),
    ]
  }
  return [
    ['TSBegin', String(beginNs)],
    ['TSEnd', String(endNs)],
    ['TSUnit', 'nanos'],
  ]
}

const LOCAL_TIME_UNIT = 'YYYYMMDD_HHMMSS'
