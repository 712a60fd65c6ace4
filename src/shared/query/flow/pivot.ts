/** From an alert to a download: the filter and the range for its conversation and its time. */

import { badParameter, quote } from '../query-parameters.ts'
import { isRelativeTime, parseQueryTime } from '../time/query-time.ts'
import { type Flow, flowFilter } from './flow-filter.ts'

/** Whose packets, and when. */
export interface Pivot {
  readonly flow: Flow
  readonly firstNs: bigint
  readonly lastNs: bigint
  /** Whether the packets of the conversation are inside a tunnel. */
  readonly isTunnelled: boolean
}

/** How much before and after an alert is downloaded, as a number with a unit: "30s". */
export interface PivotMargins {
  readonly before: string
  readonly after: string
}

export const PIVOT_MARGINS: PivotMargins = { before: '30s', after: '5m' }

/** The range from `before` the first instant to `after` the last. Fails with bad-parameter. */
export function pivotRange(
  { firstNs, lastNs }: Pick<Pivot, 'firstNs' | 'lastNs'>,
  { before, after }: PivotMargins,
): { readonly beginNs: bigint; readonly endNs: bigint } {
  const begin = { parameter: 'before', unit: undefined, zone: 'UTC', nowNs: firstNs, isEnd: false }
  const end = { parameter: 'after', unit: undefined, zone: 'UTC', nowNs: lastNs, isEnd: true }
  return {
    beginNs: parseQueryTime(`-${margin('before', before)}`, begin).ns,
    endNs: parseQueryTime(`now+${margin('after', after)}`, end).ns,
  }
}

function margin(name: string, text: string): string {
  if (isRelativeTime(`-${text}`)) return text
  throw badParameter(
    name,
    `must be a number with a unit (s, m, h, d, w), such as 30s or 5m; got ${quote(text)}`,
  )
}

/** The parameters of the download, besides its devices. `isDecapsulated`: FilterBPFDecap is wanted in any case. */
export function pivotParameters(
  pivot: Pivot,
  margins: PivotMargins,
  { isDecapsulated = false }: { readonly isDecapsulated?: boolean } = {},
): Readonly<Record<'TSBegin' | 'TSEnd' | 'FilterBPF', string>> & { readonly FilterBPFDecap?: string } {
  const { beginNs, endNs } = pivotRange(pivot, margins)
  const isInnermost = isDecapsulated || pivot.isTunnelled
  return {
    TSBegin: String(beginNs),
    TSEnd: String(endNs),
    FilterBPF: flowFilter(pivot.flow, { isInnermost }),
    ...(isInnermost ? { FilterBPFDecap: 'true' } : {}),
  }
}
