/** A plan as text, for making the same download again later: in a receipt or an export. */
import { hash } from 'node:crypto'
import { CapfleetError } from '../../../shared/base/error.ts'
import { DOWNLOAD_PARAMETERS } from '../../../shared/query/download/download-parameters.ts'
import type { DownloadKind } from '../../../shared/query/download/download-query.ts'
import { formatDownloadQuery } from '../../../shared/query/download/format-download-query.ts'
import { parseDownloadQuery } from '../../../shared/query/download/parse-download-query.ts'
import { addressCount } from '../../../shared/query/filter/address-list.ts'
import { parseQueryString } from '../../../shared/query/parse-query-string.ts'
import type { DownloadPlan, DownloadStep } from './plan.ts'
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
  /** A list of addresses that is too long to be kept, and not part of the query. */
  readonly addresses?: ForgottenAddresses
}

interface ForgottenAddresses {
  /** SHA-256 of the canonical list. */
  readonly hash: string
  readonly entries: number
}

/** Receipts are many, and some lists have hundreds of thousands of characters. */
const ADDRESSES_KEPT_MAX = 16_384
const ADDRESSES_NAME = DOWNLOAD_PARAMETERS.filterAddresses.name

/** The parts of a plan that are kept. */
type Keepable = Pick<DownloadPlan, 'query'> & { readonly steps: readonly Pick<DownloadStep, 'device'>[] }

export function keepPlan({ query, steps }: Keepable): KeptPlan {
  return {
    kind: query.kind,
    query: formatDownloadQuery({ ...query, forcedFilters: [] }),
    capturesMax: query.capturesMax ?? null,
    devices: steps.map((step) => step.device),
    forcedFilters: query.forcedFilters,
  }
}

/** The same, but with only the hash of a long list of addresses, which the caller must then give again. */
export function keepShortPlan(plan: Keepable): KeptPlan {
  const { filterAddresses } = plan.query
  if (filterAddresses === undefined || filterAddresses.length <= ADDRESSES_KEPT_MAX) return keepPlan(plan)
  const addresses = { hash: hash('sha256', filterAddresses), entries: addressCount(filterAddresses) }
  return { ...keepPlan({ ...plan, query: { ...plan.query, filterAddresses: undefined } }), addresses }
}

/** The query for people. Whoever sends it again without the list gets an error, not packets of all addresses. */
export function shownQueryOf({ query, addresses }: Pick<KeptPlan, 'query' | 'addresses'>): string {
  if (addresses === undefined) return withoutLongList(query)
  return [query, `${ADDRESSES_NAME}=${describedList(addresses)}`].join('&')
}

/** A query string in which a long list of addresses is replaced by its description. */
export function withoutLongList(query: string): string {
  if (query.length <= ADDRESSES_KEPT_MAX) return query
  const pairs = query.split('&').map((pair) => {
    if (pair.length <= ADDRESSES_KEPT_MAX || !pair.startsWith(`${ADDRESSES_NAME}=`)) return pair
    const text = decodeURIComponent(pair.slice(ADDRESSES_NAME.length + 1).replaceAll('+', ' '))
    return `${ADDRESSES_NAME}=${describedList({ hash: hash('sha256', text), entries: addressCount(text) })}`
  })
  return pairs.join('&')
}

function describedList({ hash: digest, entries }: ForgottenAddresses): string {
  return encodeURIComponent(`(${entries} entries, SHA-256 ${digest})`)
}

/**
 * The same query with absolute times. `given` is the caller's list, in case it was not kept. Fails with bad-parameter
 * if it is another one.
 */
export function queryAgain(kept: KeptPlan, given?: string): BoundedQuery {
  const { addresses } = kept
  if (addresses === undefined) return rangeAgain(kept)
  if (given === undefined || hash('sha256', given) !== addresses.hash)
    throw new CapfleetError(
      'bad-parameter',
      `Resume needs the same ${ADDRESSES_NAME} again: its ${addresses.entries} entries are too long to be kept; repeat the whole request`,
      { param: 'Resume' },
    )
  return { ...rangeAgain(kept), filterAddresses: given }
}

/** queryAgain(), without a list of addresses that was not kept: for questions about its time range. */
export function rangeAgain({ kind, query, capturesMax, forcedFilters }: KeptPlan): BoundedQuery {
  const parsed = parseDownloadQuery(kind, parseQueryString(query), { zone: undefined, nowNs: 0n })
  const again = { ...parsed, timeUnit: undefined, capturesMax: capturesMax ?? undefined }
  return withFilters(again, forcedFilters)
}
