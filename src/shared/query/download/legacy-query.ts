import { badParameter, type ParameterRows } from '../query-parameters.ts'
import type { GivenParameters } from '../read-parameters.ts'
import type { DownloadKind, DownloadQuery } from './download-query.ts'
import { DOWNLOAD_TABLES, type ParseContext, parseDownloadQuery } from './parse-download-query.ts'
import { UNIT_MODE_PARAMETER } from './query-range.ts'

/** A legacy time range spans at most two PCAP files, which are captures here. */
export const LEGACY_CAPTURES_MAX = 2

/** All rows of a download below /pcap/, as DOWNLOAD_TABLES has them for the V1 paths. */
export function legacyTables(kind: DownloadKind, at: keyof typeof DOWNLOAD_TABLES): readonly ParameterRows[] {
  return DOWNLOAD_TABLES[at].map((rows) => {
    if (!('follow' in rows)) return rows
    const { follow: _, ...others } = rows
    return kind === 'timerange' ? { ...others, timeSource: UNIT_MODE_PARAMETER } : others
  })
}

/**
 * The parameters of a download below /pcap/. Every parameter of the V1 paths works there too, except that TSMode of a
 * time range is only the unit of TSBegin and TSEnd. Fails like parseDownloadQuery.
 */
export function parseLegacyQuery(
  kind: DownloadKind,
  given: GivenParameters,
  context: ParseContext,
): DownloadQuery {
  const query = parseDownloadQuery(kind, given, context)
  if (query.follow)
    throw badParameter('Follow', `is supported by /api/v1/pcap/${kind}; this path has only stored packets`)
  if (kind !== 'timerange') return query
  if (query.timeSource !== 'nic') {
    throw badParameter(
      'TSMode',
      'is the unit of TSBegin and TSEnd here (nsec, usec, msec, sec); for timestamps of a switch use /api/v1/pcap/timerange',
    )
  }
  return { ...query, capturesMax: LEGACY_CAPTURES_MAX }
}
