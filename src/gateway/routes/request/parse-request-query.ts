import { UNBOUNDED } from '../../../shared/base/caller.ts'
import { givenParameters } from '../../../shared/contract/request-parameters.ts'
import type { DownloadKind, DownloadQuery } from '../../../shared/query/download/download-query.ts'
import type { ParseContext } from '../../../shared/query/download/parse-download-query.ts'
import type { GivenParameters } from '../../../shared/query/read-parameters.ts'
import { type BoundedQuery, withinBounds } from '../../fleet/plan/within-bounds.ts'
import type { RequestParts } from './request-parts.ts'
import type { RouteContext } from './route-context.ts'

/** parseDownloadQuery, or parseLegacyQuery for the paths below /pcap/. */
export type QueryParser = (kind: DownloadKind, given: GivenParameters, context: ParseContext) => DownloadQuery

export interface RequestedDownload {
  readonly kind: DownloadKind
  readonly parse: QueryParser
  /**
   * fleet: at the root, where local times without TSZone are in the gateway's zone, and TSMode may be one of its
   * aliases. gateway: for one device, whose zone and aliases apply.
   */
  readonly at: 'gateway' | 'fleet'
  /** See ParseContext. */
  readonly table?: 'export' | 'schedule'
}

/** The download that the request's parameters specify, within the bounds of the caller. */
export function parseRequestQuery(
  ctx: RouteContext,
  parts: RequestParts,
  { kind, parse, at, table }: RequestedDownload,
): BoundedQuery {
  const { timeZone, tsModeAliases } = parts.limits
  const nowNs = BigInt(Date.now()) * 1_000_000n
  const words = at === 'fleet' ? { zone: timeZone, timeSourceAliases: tsModeAliases } : { zone: undefined }
  const context = { ...words, nowNs, at, ...(table === undefined ? {} : { table }) }
  return withinBounds(parse(kind, givenParameters(ctx), context), ctx.state.caller?.bounds ?? UNBOUNDED)
}
