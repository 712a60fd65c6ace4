/** The visible time range: drawn while it moves, written to the address when it stops. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { NS_PER_S, nowNs } from '../base/instants.ts'
import { type Changes, changed, currentState, showState, usePageState } from '../base/page-url.ts'
import { readSelection } from './selection.ts'
import { type TimeView, viewAround } from './time-view.ts'

export interface ShownView {
  readonly view: TimeView
  readonly setView: (view: TimeView) => void
  readonly isFollowing: boolean
  readonly setFollowing: (isFollowing: boolean) => void
}

/** Browsers accept about 200 changes of the address in 30 s, and a wheel turns faster. */
const RESTS_MS = 250
const FOLLOW_MS = 1_000
/** After looking at an untouched view for longer, the user does not want it to be replaced. */
const FIRST_MS = 10_000
const DAY_NS = 86_400n * NS_PER_S

/** `askFirst` is called if the address names no time. Until it answers the last day is shown. */
export function useShownView(askFirst: (signal: AbortSignal) => Promise<TimeView>): ShownView {
  const { values } = usePageState()
  const [given] = useState(() => givenView(values))
  const [start] = useState(() => given ?? { fromNs: nowNs() - DAY_NS, toNs: nowNs() })
  const [view, setView] = useState(start)
  const isFollowing = values.follow === '1'
  useEffect(() => {
    if (given !== undefined) return
    const leaving = new AbortController()
    const tooLate = setTimeout(() => leaving.abort(), FIRST_MS)
    askFirst(leaving.signal).then(
      (first) => setView((shown) => (shown === start && !leaving.signal.aborted ? first : shown)),
      // The lanes make the same requests, and report failures.
      () => undefined,
    )
    return () => {
      clearTimeout(tooLate)
      leaving.abort()
    }
  }, [])
  useAddress(view, { isFollowing, values, setView })
  useEffect(() => {
    if (!isFollowing) return
    const follow = (): void => setView((shown) => endingAt(shown, nowNs()))
    follow()
    const timer = setInterval(follow, FOLLOW_MS)
    return () => clearInterval(timer)
  }, [isFollowing])
  const setFollowing = (isOn: boolean): void =>
    showState(changed(currentState(), { follow: isOn ? '1' : undefined }))
  return { view, setView, isFollowing, setFollowing }
}

interface Addressed {
  readonly isFollowing: boolean
  readonly values: Values
  readonly setView: (view: TimeView) => void
}

/** Writes a stable view to the address, and shows what was written there by something else. */
function useAddress(view: TimeView, { isFollowing, values, setView }: Addressed): void {
  const inUrl = `${values['view-from']} ${values['view-to']}`
  const written = useRef(inUrl)
  // Following the present moves by a second each second, which is not a change.
  const resting = isFollowing ? String(view.toNs - view.fromNs) : `${view.fromNs} ${view.toNs}`
  useEffect(() => {
    const timer = setTimeout(() => {
      const text = { 'view-from': String(view.fromNs), 'view-to': String(view.toNs) }
      written.current = `${text['view-from']} ${text['view-to']}`
      showState(changed(currentState(), text))
    }, RESTS_MS)
    return () => clearTimeout(timer)
  }, [resting])
  useEffect(() => {
    const other = readView(values)
    if (other !== undefined && inUrl !== written.current) setView(other)
  }, [inUrl])
}

type Values = Readonly<Record<string, string>>

/** The view for an address: the time that it names, or that of its selection. */
export function givenView(values: Values): TimeView | undefined {
  const selection = readSelection(values)
  return readView(values) ?? (selection && viewAround(selection.fromNs, selection.toNs))
}

function readView(values: Values): TimeView | undefined {
  const [from = '', to = ''] = [values['view-from'], values['view-to']]
  if (!/^\d{1,20}$/.test(from) || !/^\d{1,20}$/.test(to) || BigInt(from) >= BigInt(to)) return undefined
  return { fromNs: BigInt(from), toNs: BigInt(to) }
}

/** The changes of the address that show its selection in the lanes; none if they show it already. */
export function viewOfSelection(values: Values): Changes {
  const selection = readSelection(values)
  const shown = readView(values)
  if (selection === undefined) return {}
  const { fromNs, toNs } = selection
  const isShown = shown !== undefined && shown.fromNs <= fromNs && toNs <= shown.toNs
  const isVisible = isShown && (toNs - fromNs) * VISIBLE_PARTS >= shown.toNs - shown.fromNs
  if (isVisible) return {}
  const view = viewAround(fromNs, toNs)
  return { 'view-from': String(view.fromNs), 'view-to': String(view.toNs), follow: undefined }
}

/** A smaller part of the lanes is hard to see. */
const VISIBLE_PARTS = 100n

/** Keeps the length. */
export function endingAt({ fromNs, toNs }: TimeView, endNs: bigint): TimeView {
  return { fromNs: endNs - (toNs - fromNs), toNs: endNs }
}
