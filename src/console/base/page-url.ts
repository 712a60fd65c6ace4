/**
 * The page's entire state is in the fragment of its address (after #), so that a link reproduces what someone sees. A
 * filter with addresses in the fragment reaches no server log.
 */
import { useEffect, useState } from 'preact/hooks'
import { isDayWord, isRelativeTime } from '../../shared/query/time/query-time.ts'
import { resolveTimeZone } from '../../shared/query/time/time-zone.ts'
import { typedInstant, type Zone } from './instants.ts'

/** `pivot` is a link from an alert that could not be read; all others are in the navigation. */
export const VIEWS = ['fleet', 'timeline', 'inside', 'queue', 'exports', 'events', 'access', 'pivot'] as const
export type View = (typeof VIEWS)[number]

/** Earlier names of views, which links and bookmarks have. */
const RENAMED: Readonly<Record<string, View>> = { live: 'events' }

export interface PageState {
  readonly view: View
  readonly values: Readonly<Record<string, string>>
}

/** Values to change; undefined removes one. */
export type Changes = Readonly<Record<string, string | undefined>>

export function parsePageState(hash: string): PageState {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?')
  const view = VIEWS.find((name) => name === (RENAMED[path] ?? path)) ?? 'fleet'
  return { view, values: Object.fromEntries(new URLSearchParams(query)) }
}

export function formatPageState({ view, values }: PageState): string {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== '')).toString()
  return `#/${view}${query === '' ? '' : `?${query}`}`
}

export function changed({ view, values }: PageState, changes: Changes): PageState {
  const next = { ...values, ...changes }
  const kept = Object.entries(next).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return { view, values: Object.fromEntries(kept) }
}

type EndName = 'TSBegin' | 'TSEnd'

/**
 * The ends of the range in the form that all views use: integers are nanoseconds, a local time in a link is converted
 * using TSZone or the given zone, a relative time stays. What needs a TSZone that is no time zone stays with it, so that
 * the gateway refuses it: in another zone it would be another range.
 */
export function withInstants(state: PageState, zone: Zone): PageState {
  const { TSZone } = state.values
  const own = TSZone === undefined ? zone : zoneOf(TSZone)
  const ends = (['TSBegin', 'TSEnd'] as const).flatMap((name) => {
    const text = state.values[name]
    if (text === undefined || isNanoseconds(text) || (own === undefined && needsZone(text))) return []
    return [[name, typedInstant(text, own ?? zone, name === 'TSEnd')] as const]
  })
  const next = changed(state, Object.fromEntries(ends))
  return changed(next, { TSZone: hasZone(next.values) ? (own ?? TSZone) : undefined })
}

/** The changes that typing an end of the range makes, in the zone of the page. */
export function typedEnd(values: PageState['values'], name: EndName, text: string, zone: Zone): Changes {
  const end = typedInstant(text, zone, name === 'TSEnd')
  // Both ends have the same zone, also if the page has shown another one since the other was typed.
  const other = values[name === 'TSBegin' ? 'TSEnd' : 'TSBegin']
  const own = needsZone(other) && values.TSZone !== undefined ? values.TSZone : zone
  return {
    [name]: end === '' ? undefined : end,
    TSZone: needsZone(end) || needsZone(other) ? own : undefined,
  }
}

/** Whether the range needs TSZone: "today" and "yesterday" begin at different times in different zones. */
export function hasZone({ TSBegin, TSEnd }: PageState['values']): boolean {
  return needsZone(TSBegin) || needsZone(TSEnd)
}

/** Whether the end of a range is another instant in another zone. */
function needsZone(text = ''): boolean {
  if (isRelativeTime(text) || isNanoseconds(text)) return isDayWord(text)
  return typedInstant(text, 'Etc/GMT+12') !== typedInstant(text, 'Etc/GMT-14')
}

function zoneOf(name: string): Zone | undefined {
  try {
    return resolveTimeZone(name, 'TSZone')
  } catch {
    return undefined
  }
}

/**
 * For an end of the range, whatever its length: the API takes a short integer for another unit unless told otherwise.
 */
export function isNanoseconds(text: string): boolean {
  return /^\d{1,20}$/.test(text)
}

/** Rewrites each address that comes from outside, before any component reads it: a link, "back", or typed text. */
export function settleAddresses(rewrite: (state: PageState) => PageState): void {
  const settle = (): void => {
    const state = currentState()
    const settled = formatPageState(rewrite(state))
    if (settled !== formatPageState(state)) history.replaceState(null, '', settled)
  }
  settle()
  for (const name of OUTSIDE_EVENTS) window.addEventListener(name, settle)
}

const OUTSIDE_EVENTS = ['popstate', 'hashchange'] as const

/** Changes made while dragging or typing are not separate steps for the "back" button. */
export function showState(state: PageState, { isStep = false } = {}): void {
  const url = formatPageState(state)
  if (url === formatPageState(currentState())) return
  if (isStep) history.pushState(null, '', url)
  else history.replaceState(null, '', url)
  window.dispatchEvent(new Event('page-state'))
}

export function currentState(): PageState {
  return parsePageState(location.hash)
}

export function usePageState(): PageState {
  const [state, setState] = useState(currentState)
  useEffect(() => {
    const read = (): void => setState(currentState())
    const events = ['page-state', ...OUTSIDE_EVENTS]
    for (const name of events) window.addEventListener(name, read)
    // The address may have changed since the first rendering, before the listener was added.
    read()
    return () => {
      for (const name of events) window.removeEventListener(name, read)
    }
  }, [])
  return state
}
