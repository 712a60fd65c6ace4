/**
 * The whole state of the page stands behind the # of its address, so that a link is what somebody sees. There a filter
 * with addresses in it reaches no server's log.
 */
import { useEffect, useState } from 'preact/hooks'
import { typedInstant, type Zone } from './instants.ts'

export const VIEWS = ['fleet', 'timeline', 'inside', 'queue', 'exports', 'live', 'access'] as const
export type View = (typeof VIEWS)[number]

export interface PageState {
  readonly view: View
  readonly values: Readonly<Record<string, string>>
}

/** Values to change; undefined removes one. */
export type Changes = Readonly<Record<string, string | undefined>>

export function parsePageState(hash: string): PageState {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?')
  const view = VIEWS.find((name) => name === path) ?? 'fleet'
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

/**
 * The ends of the range as all views take them: an integer is in nanoseconds, a local time of a link becomes one in the
 * given zone, a relative time stays.
 */
export function withInstants(state: PageState, zone: Zone): PageState {
  const ends = (['TSBegin', 'TSEnd'] as const).flatMap((name) => {
    const text = state.values[name]
    return text === undefined || isNanoseconds(text) ? [] : [[name, typedInstant(text, zone)] as const]
  })
  return changed(state, Object.fromEntries(ends))
}

/** Of an end of the range, whatever its length: the API takes a short integer for another unit, unless it is told. */
export function isNanoseconds(text: string): boolean {
  return /^\d{1,20}$/.test(text)
}

/** Rewrites each address that comes from outside, before any component reads it: a link, "back", or what somebody typed. */
export function settleAddresses(zone: () => Zone): void {
  const settle = (): void => {
    const state = currentState()
    const settled = formatPageState(withInstants(state, zone()))
    if (settled !== formatPageState(state)) history.replaceState(null, '', settled)
  }
  settle()
  for (const name of OUTSIDE_EVENTS) window.addEventListener(name, settle)
}

const OUTSIDE_EVENTS = ['popstate', 'hashchange'] as const

/** What changes while somebody drags or types is no step that the button "back" should know. */
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
    // The address may have changed since the first drawing, when nobody listened yet.
    read()
    return () => {
      for (const name of events) window.removeEventListener(name, read)
    }
  }, [])
  return state
}
