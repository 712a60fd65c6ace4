import type { DownloadQuery } from '../../src/shared/query/download/download-query.ts'
import { bodyEncodingOf, ENCODING_FILES } from '../../src/shared/query/download/query-values.ts'
import { ignoredNames } from '../../src/shared/query/ignored-names.ts'
import { damagedSegments, type StreamSelection } from './select-streams.ts'

export interface DownloadHead {
  readonly query: DownloadQuery
  readonly fileName: string
  /** Retention has removed packets of the range older than this. */
  readonly agedOutBeforeNs?: bigint | undefined
  readonly selection: Pick<StreamSelection, 'streams'>
}

/**
 * The headers of every download. Never Content-Encoding: the caller requested a compressed file, which no intermediary
 * may unpack.
 */
export function downloadHeaders(head: DownloadHead): Record<string, string> {
  const { query, fileName, agedOutBeforeNs, selection } = head
  const { mediaType } = ENCODING_FILES[bodyEncodingOf(query)]
  const headers: Record<string, string> = {
    'Content-Type': mediaType,
    'Content-Disposition': `attachment; filename="${fileName}"`,
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
  }
  if (query.timeUnit !== undefined) headers['Capfleet-TS-Unit'] = query.timeUnit
  if (query.timeZone !== undefined) headers['Capfleet-Time-Zone'] = query.timeZone
  // A caller that lost the connection may then continue with TSBegin without missing a packet.
  if (query.timeSource === 'nic') headers['Capfleet-Order'] = 'time'
  if (query.afterBytes !== undefined) headers['Capfleet-After'] = String(query.afterBytes)
  if (agedOutBeforeNs !== undefined) headers['Capfleet-Aged-Out-Before'] = String(agedOutBeforeNs)
  const damaged = damagedSegments(selection)
  if (damaged > 0) headers['Capfleet-Damaged-Segments'] = String(damaged)
  if (query.ignored.length > 0) headers['Capfleet-Ignored'] = ignoredNames(query.ignored)
  return headers
}
