/** The search for addresses in the whole fleet: its field, what came of it, and a list of the times. */

import { useEffect, useState } from 'preact/hooks'
import { packetsText } from '../../shared/base/amounts.ts'
import { listText } from '../../shared/base/list-text.ts'
import { badParameter } from '../../shared/query/query-parameters.ts'
import { TIME_LIMIT_NS } from '../../shared/query/time/query-time.ts'
import { durationText, instantText } from '../base/instants.ts'
import { changed, currentState, showState, usePageState } from '../base/page-url.ts'
import { useSurroundings } from '../parts/context.ts'
import { Failure } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import { isPastedAlert, selectAlert } from './pasted-alert.ts'
import { askSightings, type FoundSightings, NO_SIGHTINGS, type Sighting } from './sightings.ts'

/** Name of the search in the page's address. */
export const SEEN_SEARCH = 'seen'
/** A request whose address is longer may be rejected on its way. Longer lists are for the command line. */
const SEARCHED_MAX = 2_000
/** Characters of a typed or pasted text: an event may contain its payload. */
const TYPED_MAX = 1_048_576
const SHOWN_MAX = 200

export interface SightingSearch {
  /** What is searched for; empty: nothing. */
  readonly addresses: string
  readonly found: FoundSightings
  readonly failure: unknown
  readonly again: () => void
}

/** The search that the page's address names, in everything that the devices have. */
export function useSightingSearch(): SightingSearch {
  const { values } = usePageState()
  const { session } = useSurroundings()
  const addresses = (values[SEEN_SEARCH] ?? '').trim()
  const [found, setFound] = useState(NO_SIGHTINGS)
  const [failure, setFailure] = useState<unknown>()
  const [round, setRound] = useState(0)
  useEffect(() => {
    setFound(NO_SIGHTINGS)
    setFailure(undefined)
    if (addresses === '') return
    const leaving = new AbortController()
    const { signal } = leaving
    const isFiltered = session.bounds.filters.length > 0
    askSightings({ addresses, fromNs: 0n, toNs: TIME_LIMIT_NS, isFiltered }, signal, (next) => {
      if (!signal.aborted) setFound(next)
    }).catch((error: unknown) => {
      if (!signal.aborted) setFailure(error)
    })
    return () => leaving.abort()
  }, [addresses, round])
  return { addresses, found, failure, again: () => setRound((before) => before + 1) }
}

/** Searches for addresses; an alert that is pasted into it selects the packets of its conversation. */
export function SearchField({ addresses }: Pick<SightingSearch, 'addresses'>) {
  const { search: texts } = TEXTS.timeline
  const { zone } = useSurroundings()
  const [mistake, setMistake] = useState<unknown>()
  const submit = (form: HTMLFormElement): void => {
    const typed = String(new FormData(form).get(SEEN_SEARCH) ?? '').trim()
    try {
      const isAlert = isPastedAlert(typed)
      if (!isAlert && typed.length > SEARCHED_MAX)
        throw badParameter('the search', texts.tooLong(SEARCHED_MAX))
      const state = currentState()
      showState(changed(state, isAlert ? selectAlert(typed, state.values, zone) : { [SEEN_SEARCH]: typed }), {
        isStep: true,
      })
      setMistake(undefined)
      if (isAlert) form.reset()
    } catch (error) {
      setMistake(error)
    }
  }
  return (
    <search class="controls">
      <form
        class="group"
        onSubmit={(event) => {
          event.preventDefault()
          submit(event.currentTarget)
        }}
      >
        <input
          type="search"
          name={SEEN_SEARCH}
          key={addresses}
          defaultValue={addresses}
          maxLength={TYPED_MAX}
          aria-label={texts.label}
          placeholder={texts.placeholder}
          autocomplete="off"
          spellcheck={false}
        />
        <button type="submit">{texts.button}</button>
      </form>
      <Failure failure={mistake} />
    </search>
  )
}

interface ResultProps {
  readonly search: SightingSearch
  readonly onChoose: (sighting: Sighting) => void
}

export function SearchResult({ search: { addresses, found, failure, again }, onChoose }: ResultProps) {
  if (addresses === '') return null
  if (failure !== undefined)
    return (
      <div class="sightings">
        <Failure failure={failure} again={again} />
      </div>
    )
  return (
    <>
      <p class="sightings" role="status">
        {outcomeText(found)}
        {gapTexts(found).map((text) => (
          <span key={text} class="warning">
            {' '}
            {text}
          </span>
        ))}
      </p>
      {found.sightings.length === 0 ? null : <SightingList found={found} onChoose={onChoose} />}
    </>
  )
}

function outcomeText({ sightings, end }: FoundSightings): string {
  const { search: texts } = TEXTS.timeline
  if (end === undefined) return texts.searching
  const devices = new Set(sightings.map(({ device }) => device)).size
  return devices === 0 ? texts.nowhere(end.devices - end.unanswered.length) : texts.seen(devices, end.devices)
}

/** Why packets of the addresses may be missing from the answer. */
function gapTexts({ failures, end }: FoundSightings): readonly string[] {
  const { search: texts } = TEXTS.timeline
  const failed = [...failures].map(([device, detail]) => texts.unanswered(device, detail))
  if (end === undefined) return failed
  const others = end.otherLinkTypes.map(({ device }) => device)
  return [
    ...failed,
    ...(end.partial.length === 0 ? [] : [texts.partial(listText(end.partial))]),
    ...(others.length === 0 ? [] : [texts.otherLinkTypes(listText(others))]),
  ]
}

function SightingList({
  found: { sightings, isCut },
  onChoose,
}: { readonly found: FoundSightings } & Pick<ResultProps, 'onChoose'>) {
  const { zone } = useSurroundings()
  const { search: texts } = TEXTS.timeline
  const shown = sightings.slice(0, SHOWN_MAX)
  return (
    <details class="capture-list" open>
      <summary>
        {texts.times} <span class="quiet">{sightings.length}</span>
        {isCut || shown.length < sightings.length ? (
          <span class="warning"> {texts.cut(shown.length)}</span>
        ) : null}
      </summary>
      <ul aria-label={texts.times}>
        {shown.map((sighting) => (
          <li key={`${sighting.device} ${sighting.address} ${sighting.fromNs} ${sighting.packets}`}>
            <button type="button" onClick={() => onChoose(sighting)}>
              <span class="name mono">{sighting.address}</span>
              <span>{sighting.device}</span>
              <span class="mono">{instantText(sighting.fromNs, zone, 0)}</span>
              <span class="mono">{durationText(sighting.toNs - sighting.fromNs)}</span>
              {sighting.packets === undefined ? null : (
                <span class="mono number">{packetsText(sighting.packets)}</span>
              )}
            </button>
          </li>
        ))}
      </ul>
    </details>
  )
}
