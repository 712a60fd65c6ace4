/**
 * Links from alerts: `#/pivot?src=...&dst=...&at=...` opens the timeline with the range, the devices and the filter
 * that `capfleet get --alert` would use.
 */
import { readFlow } from '../../shared/query/flow/flow-filter.ts'
import {
  PIVOT_MARGINS,
  type Pivot,
  type PivotMargins,
  pivotParameters,
} from '../../shared/query/flow/pivot.ts'
import { badParameter } from '../../shared/query/query-parameters.ts'
import { instantOfTyped, type Zone } from '../base/instants.ts'
import { type Changes, changed, type PageState } from '../base/page-url.ts'
import { viewOfSelection } from '../timeline/shown-view.ts'
import { downloadValues } from './parameter-groups.ts'

/** The names of a link, in the order in which they are explained. */
export const PIVOT_NAMES = ['src', 'dst', 'proto', 'sport', 'dport', 'at', 'before', 'after'] as const

/** Name of the hosts whose devices are still to be found (alert-devices.tsx). */
export const SAW = 'saw'

/** Parameters that the alert determines. */
const MADE: ReadonlySet<string> = new Set(['TSBegin', 'TSEnd', 'FilterBPF'])
const DECAP = 'FilterBPFDecap'

type Values = PageState['values']

/** The view that a link from an alert opens; any other state, and a link with a mistake, unchanged. */
export function withPivot(state: PageState, zone: Zone): PageState {
  if (state.view !== 'pivot') return state
  try {
    return pivotedState(state.values, zone)
  } catch {
    // The view "pivot" shows the mistake.
    return state
  }
}

/** Fails with bad-parameter that names the mistake in the link. */
export function pivotedState(values: Values, zone: Zone): PageState {
  refuseOtherNames(values)
  const named = (name: (typeof PIVOT_NAMES)[number]) => ({ name, text: values[name] })
  const flow = readFlow({
    source: named('src'),
    destination: named('dst'),
    protocol: named('proto'),
    sourcePort: named('sport'),
    destinationPort: named('dport'),
  })
  const { at = '', before = '', after = '' } = values
  if (at.trim() === '') throw badParameter('at', 'is missing; give the time of the alert')
  const atNs = instantOfTyped('at', at.trim(), zone)
  const margins = {
    before: before.trim() || PIVOT_MARGINS.before,
    after: after.trim() || PIVOT_MARGINS.after,
  }
  const isDecapsulated = /^(1|true)$/i.test(values[DECAP] ?? '')
  const pivot = { flow, firstNs: atNs, lastNs: atNs, isTunnelled: false }
  const others = Object.entries(values).filter(([name]) => isOfDownload(name))
  const given: PageState = { view: 'timeline', values: Object.fromEntries(others) }
  const state = changed(given, ofAlert(pivot, margins, { isDecapsulated, devices: values.Device }))
  return changed(state, viewOfSelection(state.values))
}

/** The range and the filter of an alert; if no devices are given, also which ones are to be found. */
export function ofAlert(
  pivot: Pivot,
  margins: PivotMargins,
  { isDecapsulated, devices }: { readonly isDecapsulated: boolean; readonly devices: string | undefined },
): Changes {
  const made = pivotParameters(pivot, margins, { isDecapsulated })
  const hosts = [pivot.flow.source.host, pivot.flow.destination.host].filter((host) => host !== undefined)
  // Inside of tunnels, devices cannot search for addresses.
  const isSearched = made.FilterBPFDecap === undefined && (devices ?? '') === ''
  return { ...made, [SAW]: isSearched ? [...new Set(hosts)].join(',') : undefined }
}

function refuseOtherNames(values: Values): void {
  const other = Object.keys(values).find(
    (name) => !PIVOT_NAMES.some((own) => own === name) && !isOfDownload(name),
  )
  if (other === undefined) return
  if (MADE.has(other))
    throw badParameter(
      other,
      'is computed from the alert; leave it out, or link to #/timeline to set it yourself',
    )
  throw badParameter(
    other,
    `is unknown; a link from an alert has ${PIVOT_NAMES.join(', ')}, Device and parameters of a download`,
  )
}

function isOfDownload(name: string): boolean {
  return name in downloadValues(new URLSearchParams()) && !MADE.has(name)
}
