/**
 * Parses the parameters of a download into a DownloadQuery, or fails with a CapfleetError that names the parameter and
 * the allowed form. Pure text processing without look-ups. What a single parameter may be is defined in its row in
 * download-parameters.ts; which ones cannot be combined is defined here.
 */

import type { FrameCondition } from '../filter/frame-filter.ts'
import { badParameter, type ParameterRows, type ReadContext } from '../query-parameters.ts'
import { type GivenParameters, ignoredParameters, readParameters } from '../read-parameters.ts'
import { timeUnitOf } from '../time/query-time.ts'
import { timeSourceOf } from '../time-source.ts'
import { DOWNLOAD_PARAMETERS } from './download-parameters.ts'
import type { DownloadKind, DownloadQuery } from './download-query.ts'
import { EXPORT_PARAMETERS, SCHEDULE_PARAMETERS } from './export-options.ts'
import { FLEET_PARAMETERS, GATEWAY_PARAMETERS } from './gateway-options.ts'
import { RANGE_PARAMETERS, type RangeContext, readQueryRange } from './query-range.ts'

export interface ParseContext extends RangeContext, Pick<ReadContext, 'at' | 'timeSourceAliases'> {
  /** The rows that the request may have. Default: those of a download there. */
  readonly table?: keyof typeof DOWNLOAD_TABLES
}

const { follow: _follow, waitS: _waitS, ...EXPORTED_PARAMETERS } = DOWNLOAD_PARAMETERS
const { align } = GATEWAY_PARAMETERS
const EXPORT_TABLES = [
  FLEET_PARAMETERS,
  RANGE_PARAMETERS,
  EXPORTED_PARAMETERS,
  { align },
  EXPORT_PARAMETERS,
] as const

/** All rows of a download, by who reads it. */
export const DOWNLOAD_TABLES = {
  device: [RANGE_PARAMETERS, DOWNLOAD_PARAMETERS],
  gateway: [RANGE_PARAMETERS, DOWNLOAD_PARAMETERS, GATEWAY_PARAMETERS],
  fleet: [FLEET_PARAMETERS, RANGE_PARAMETERS, DOWNLOAD_PARAMETERS, GATEWAY_PARAMETERS],
  /** Nobody waits for an export, so parameters for waiting and resuming do not apply. */
  export: EXPORT_TABLES,
  schedule: [SCHEDULE_PARAMETERS, ...EXPORT_TABLES],
} as const satisfies Record<string, readonly ParameterRows[]>

/** The kind of download that an estimate is for: of a capture, of a part of one, or of a time range. */
export function estimatedKind(given: GivenParameters): DownloadKind {
  if (!given.has('StreamName')) return 'timerange'
  return given.has('Start') || given.has('Stop') ? 'splittime' : 'single'
}

/** Fails with bad-parameter, bad-frame-filter, bad-timezone, ambiguous-timezone. */
export function parseDownloadQuery(
  kind: DownloadKind,
  given: GivenParameters,
  { zone, nowNs, table, ...where }: ParseContext,
): DownloadQuery {
  const context: ReadContext = { ...where, kind }
  const range = readQueryRange(kind, given, { zone, nowNs })
  const { filterPort, frameFilter, ...values } = readParameters(DOWNLOAD_PARAMETERS, given, context)
  const timeSourceWord = wordForDevice(given, context)
  refuseFollow(values)
  refuseVainDedupBy(values)
  return {
    kind,
    ...range,
    capturesMax: undefined,
    forcedFilters: [],
    ...values,
    ...(timeSourceWord === undefined ? {} : { timeSourceWord }),
    frameFilter: [...frameFilter, ...portCondition(filterPort)],
    ignored: ignoredParameters(DOWNLOAD_TABLES[table ?? context.at ?? 'device'], given, context),
  }
}

/** If local times are left to the device, so are its own words of TSMode. */
function wordForDevice(given: GivenParameters, { at, kind }: ReadContext): string | undefined {
  const word = given.get('TSMode') ?? ''
  if (at !== 'gateway' || word === '' || timeSourceOf(word, {}) !== undefined) return undefined
  return kind === 'timerange' && timeUnitOf(word) !== undefined ? undefined : word
}

/** FilterPort is the legacy spelling of one condition. */
function portCondition(port: bigint | undefined): readonly FrameCondition[] {
  return port === undefined ? [] : [{ field: 'capture.port', op: '==', values: [Number(port)] }]
}

function refuseFollow({
  follow,
  timeSource,
  afterBytes,
  dedupNs,
}: Pick<DownloadQuery, 'follow' | 'timeSource' | 'afterBytes' | 'dedupNs'>): void {
  if (!follow) return
  // In a vendor's time packets are sorted, and the next one is unknown before the end of the range.
  if (timeSource !== 'nic') {
    throw badParameter(
      'Follow',
      `cannot sort packets by ${timeSource} as they arrive; leave out TSMode or Follow`,
    )
  }
  // In a second download, late packets would be in their places before what was sent.
  if (afterBytes !== undefined) {
    throw badParameter(
      'After',
      'cannot resume a followed download, because late packets change it; request the later packets with TSBegin, or leave out Follow',
    )
  }
  // Each part of a followed download begins without knowing the packets before it.
  if (dedupNs !== undefined)
    throw badParameter('Dedup', 'cannot be combined with Follow; leave out one of them')
}

function refuseVainDedupBy({ dedupNs, dedupBy }: Pick<DownloadQuery, 'dedupNs' | 'dedupBy'>): void {
  if (dedupNs !== undefined || dedupBy === DOWNLOAD_PARAMETERS.dedupBy.default) return
  throw badParameter('DedupBy', 'needs Dedup=<nanoseconds>; add it, or remove DedupBy')
}
