/** Applies the bounds of a caller to a download. */
import type { Bounds } from '../../../shared/base/caller.ts'
import { CapfleetError } from '../../../shared/base/error.ts'
import type { DownloadQuery } from '../../../shared/query/download/download-query.ts'
import { isEnclosed } from '../../../shared/query/filter/joined-filter.ts'

declare const BOUNDED: unique symbol

/**
 * A query within its caller's bounds. Everything that plans, counts, stores or sends a query to a device requires this
 * type, and only the functions of this file create it, so a code path that forgets the bounds does not compile.
 */
export interface BoundedQuery extends DownloadQuery {
  readonly [BOUNDED]: true
}

/** The query with the caller's filters; fails with bad-bpf or out-of-bounds. */
export function withinBounds(query: DownloadQuery, { filters, spanMaxS }: Bounds): BoundedQuery {
  if (spanMaxS !== undefined) refuseLongSpan(query, spanMaxS)
  if (filters.length === 0) return query as BoundedQuery
  const { filterBpf, filterDecap } = query
  if (filterDecap)
    throw outOfBounds(
      'looks into tunnels, but your filter applies to packets as they were captured',
      'FilterBPFDecap',
    )
  if (filterBpf !== undefined && !isEnclosed(filterBpf))
    throw new CapfleetError('bad-bpf', 'FilterBPF has unmatched parentheses', { param: 'FilterBPF' })
  return withFilters(query, filters)
}

/** A query that was within its caller's bounds when it was stored, with the filters that were stored with it. */
export function withFilters(query: DownloadQuery, forcedFilters: readonly string[]): BoundedQuery {
  return { ...query, forcedFilters } as BoundedQuery
}

const NS_PER_S = 1_000_000_000n

function refuseLongSpan({ kind, beginNs, endNs, localTimes }: DownloadQuery, spanMaxS: number): void {
  const ask = `you may request at most ${spanMaxS} s at once`
  if (kind === 'single')
    throw outOfBounds(`${ask}: request a part of the capture with Start and Stop`, 'StreamName')
  if (localTimes !== undefined)
    throw outOfBounds(`${ask}: give TSZone, or epoch times, so that the length can be checked`, 'TSBegin')
  if (isLongerThan(endNs - beginNs, spanMaxS)) throw outOfBounds(`${ask}; request less`, 'TSEnd')
}

export function isLongerThan(spanNs: bigint, limitS: number): boolean {
  return spanNs > BigInt(limitS) * NS_PER_S
}

export function outOfBounds(message: string, param?: string): CapfleetError {
  const text = param === undefined ? message : `${param}: ${message}`
  return new CapfleetError('out-of-bounds', text, param === undefined ? {} : { param })
}
