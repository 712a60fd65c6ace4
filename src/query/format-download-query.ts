import type { DownloadQuery } from './download-query.ts'
import { formatFrameFilter } from './frame-filter.ts'

/**
 * The canonical query string (without "?") that asks an appliance for the same packets: times in
 * nanoseconds, defaults left out. `waitS` and `ignored` are the caller's matter and not in it;
 * `capturesMax` is said by the path (/pcap/ instead of /api/v1/pcap/).
 */
export function formatDownloadQuery(query: DownloadQuery): string {
  const pairs: [string, string | undefined][] = [
    ['StreamName', query.captureName],
    ...formatRange(query),
    ['FilterBPF', query.filterBpf],
    ['FilterBPFDecap', query.filterDecap ? 'true' : undefined],
    ['FilterFrame', query.frameFilter.length === 0 ? undefined : formatFrameFilter(query.frameFilter)],
    ['FilterRE', query.filterRegex],
    ['Follow', query.follow ? '1' : undefined],
    ['TSMode', query.timeSourceWord ?? (query.timeSource === 'nic' ? undefined : query.timeSource)],
    ['TSMax', query.tsMaxNs?.toString()],
    ['MaxBytes', query.maxBytes?.toString()],
    ['MaxPackets', query.maxPackets?.toString()],
    ['After', query.afterBytes?.toString()],
    ['Slice', query.sliceBytes?.toString()],
    ['TSResolution', query.timeResolution === 'nsec' ? undefined : query.timeResolution],
    ['Compression', query.compression === 'none' ? undefined : query.compression],
  ]
  return pairs
    .filter((pair): pair is [string, string] => pair[1] !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&')
}

function formatRange({ kind, beginNs, endNs, localTimes }: DownloadQuery): [string, string][] {
  if (kind === 'single') return []
  if (kind === 'splittime') {
    return [
      ['Start', String(beginNs)],
      ['Stop', String(endNs)],
    ]
  }
  if (localTimes !== undefined) {
    return [
      ['TSBegin', localTimes.begin ?? rfc3339Of(beginNs)],
      ['TSEnd', localTimes.end ?? rfc3339Of(endNs)],
    ]
  }
  return [
    ['TSBegin', String(beginNs)],
    ['TSEnd', String(endNs)],
    ['TSUnit', 'nanos'],
  ]
}

/** Beside a local time, whose unit is not that of a number. */
function rfc3339Of(ns: bigint): string {
  const seconds = new Date(Number(ns / 1_000_000n)).toISOString().slice(0, 'YYYY-MM-DDTHH:MM:SS'.length)
  return `${seconds}.${String(ns % 1_000_000_000n).padStart(9, '0')}Z`
}
