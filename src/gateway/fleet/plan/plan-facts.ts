/**
 * What a download or an export covers, as facts for the audit: taken from the parsed plan, never from the caller's
 * text.
 */

import { hash } from 'node:crypto'
import { DOWNLOAD_PARAMETERS } from '../../../shared/query/download/download-parameters.ts'
import { addressCount } from '../../../shared/query/filter/address-list.ts'
import type { BoundedQuery } from './within-bounds.ts'

/** Members of an audit line. Undefined ones are omitted. */
export interface PlanFacts {
  readonly devices: readonly string[]
  readonly kind: BoundedQuery['kind']
  /** The capture as it was requested. */
  readonly capture: string | undefined
  /** Epoch nanoseconds, half-open. */
  readonly beginNs: bigint | undefined
  readonly endNs: bigint | undefined
  /** Local times that the device interprets in its own zone. */
  readonly localTimes: BoundedQuery['localTimes']
  /** The caller's own filters, by parameter. */
  readonly filters: Readonly<Record<string, string>> | undefined
  /** The filters from the caller's bounds. */
  readonly forcedFilters: readonly string[] | undefined
}

export function planFacts(query: BoundedQuery, devices: readonly string[]): PlanFacts {
  const { kind, captureName, beginNs, endNs, localTimes, forcedFilters } = query
  const range = kind === 'single' ? { beginNs: undefined, endNs: undefined } : { beginNs, endNs }
  const filters = ownFilters(query)
  return {
    devices,
    kind,
    capture: captureName,
    ...range,
    localTimes,
    filters: Object.keys(filters).length === 0 ? undefined : filters,
    forcedFilters: forcedFilters.length === 0 ? undefined : forcedFilters,
  }
}

function ownFilters({ filterBpf, filterDecap, filterAddresses, frameFilter, filterRegex }: BoundedQuery) {
  const { frameFilter: frameRow } = DOWNLOAD_PARAMETERS
  return {
    ...(filterBpf === undefined ? {} : { [DOWNLOAD_PARAMETERS.filterBpf.name]: filterBpf }),
    ...(filterDecap ? { [DOWNLOAD_PARAMETERS.filterDecap.name]: 'true' } : {}),
    ...(filterAddresses === undefined
      ? {}
      : { [DOWNLOAD_PARAMETERS.filterAddresses.name]: shownAddresses(filterAddresses) }),
    ...(frameFilter.length === 0 ? {} : { [frameRow.name]: frameRow.type.write(frameFilter) }),
    ...(filterRegex === undefined ? {} : { [DOWNLOAD_PARAMETERS.filterRegex.name]: filterRegex }),
  }
}

/** The audit truncates longer texts. */
const LIST_SHOWN_MAX = 2_000

/** A long list is identified by its hash. */
function shownAddresses(list: string): string {
  if (list.length <= LIST_SHOWN_MAX) return list
  return `${addressCount(list)} entries, SHA-256 ${hash('sha256', list)}: ${list.slice(0, LIST_SHOWN_MAX)}...`
}
