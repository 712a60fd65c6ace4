/** An alert as it is pasted into the search field: an event of Suricata or Zeek in JSON, or a conversation as text. */
import { readAlertLine, readWrittenFlow } from '../../shared/query/flow/alert-line.ts'
import type { Flow } from '../../shared/query/flow/flow-filter.ts'
import { PIVOT_MARGINS } from '../../shared/query/flow/pivot.ts'
import { badParameter } from '../../shared/query/query-parameters.ts'
import type { Zone } from '../base/instants.ts'
import { type Changes, changed, type PageState } from '../base/page-url.ts'
import { GROUPS } from '../download/parameter-groups.ts'
import { ofAlert } from '../download/pivot-link.ts'
import { TEXTS } from '../texts.ts'
import { readSelection } from './selection.ts'
import { viewOfSelection } from './shown-view.ts'

/** Whether the text says more than addresses and networks, which are searched for. */
export function isPastedAlert(text: string): boolean {
  if (text.startsWith('{') || text.includes('->') || text.includes('[**]')) return true
  if (text.includes('#')) return false
  const words = text.split(/[\s,]+/).filter((word) => word !== '')
  if (words.some((word) => /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9A-Fa-f:.]{2,45}\]):\d{1,5}$/.test(word)))
    return true
  const isAddress = (word: string): boolean => /^[0-9A-Fa-f.:/]+$/.test(word) && /[.:]/.test(word)
  return words.length > 1 && !words.every(isAddress)
}

/**
 * Selects the range, the filter and the devices of the alert instead of those before. Without a time of its own it is
 * looked for in the selected range. Fails with bad-parameter, or an Error with the words for the user.
 */
export function selectAlert(text: string, values: PageState['values'], zone: Zone): Changes {
  if (!text.startsWith('{')) {
    const { flow, atNs } = readWrittenFlow(text, zone)
    if (atNs === undefined) return selectedFlow(flow, values)
  }
  const alert = readAlertLine(text, zone)
  if ('about' in alert) throw new Error(TEXTS.timeline.alert.noAddress(alert.about))
  const made = ofAlert(alert, PIVOT_MARGINS, { isDecapsulated: false, devices: undefined })
  return { ...cleared(), ...made, ...viewOfSelection(changed({ view: 'timeline', values }, made).values) }
}

/** In the selected range. */
function selectedFlow(flow: Flow, values: PageState['values']): Changes {
  const range = readSelection(values)
  if (range === undefined) throw badParameter('the alert', TEXTS.timeline.alert.noTime)
  const { TSBegin, TSEnd, TSZone } = values
  const pivot = { flow, firstNs: range.fromNs, lastNs: range.toNs, isTunnelled: false }
  const made = ofAlert(pivot, PIVOT_MARGINS, { isDecapsulated: false, devices: undefined })
  return { ...cleared(), ...made, TSBegin, TSEnd, TSZone }
}

/** What another selection would leave out of the packets of the alert. */
function cleared(): Changes {
  const rows = [...(GROUPS.get('filters') ?? []), ...(GROUPS.get('limits') ?? [])]
  const names = [...rows.map(({ name }) => name), 'Device', 'TSZone', 'seen']
  return Object.fromEntries(names.map((name) => [name, undefined]))
}
