/** A plan as text, for making the same download again later: in a receipt or an export. */
import type { DownloadKind } from '../../shared/query/download-query.ts'
import { formatDownloadQuery } from '../../shared/query/format-download-query.ts'
import { parseDownloadQuery } from '../../shared/query/parse-download-query.ts'
import { parseQueryString } from '../../shared/query/parse-query-string.ts'
import type { DownloadPlan } from './plan.ts'
import { type BoundedQuery, withFilters } from './within-bounds.ts'

/** Plain JSON. */
export interface KeptPlan {
  readonly kind: DownloadKind
  /** formatDownloadQuery of what was requested, with absolute times. */
  readonly query: string
  readonly capturesMax: number | null
  /** As in DownloadQuery; they are not part of the query. */
  readonly forcedFilters: readonly string[]
  /** In the order of the plan. */
  readonly devices: readonly string[]
}

export function keepPlan({ query, steps }: DownloadPlan): KeptPlan {
  return {
    kind: query.kind,
    query: formatDownloadQuery({ ...query, forcedFilters: [] }),
    capturesMax: query.capturesMax ?? null,
    devices: steps.map((step) => step.device),
    forcedFilters: query.forcedFilters,
  }
}

/** The same query with absolute times. */
export function queryAgain({ kind, query, capturesMax, forcedFilters }: KeptPlan): BoundedQuery {
  const parsed = parseDownloadQuery(kind, parseQueryString(query), { zone: undefined, nowNs: 0n })
  const again = { ...parsed, timeUnit: undefined, capturesMax: capturesMax ?? undefined }
  return withFilters(again, forcedFilters)
}
