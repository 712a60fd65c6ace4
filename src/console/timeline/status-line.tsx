/** Below the lanes: the selection, what is not shown and why, and a legend of the marks. */

import { listText } from '../../shared/base/list-text.ts'
import { messageOf } from '../base/ask-gateway.ts'
import { useLasting } from '../base/asked.ts'
import { durationText, instantText, isoText } from '../base/instants.ts'
import { useSurroundings } from '../parts/context.ts'
import { Value } from '../parts/copied.tsx'
import { TEXTS } from '../texts.ts'
import type { TimeView } from './time-view.ts'

interface StatusProps {
  readonly isAsking: boolean
  readonly failure: unknown
  readonly silent: ReadonlySet<string>
  readonly selection: TimeView | undefined
  /** Visible lanes that are not requested. */
  readonly unasked: number
}

export function StatusLine({ isAsking, failure, silent, selection, unasked }: StatusProps) {
  const { timeline: texts } = TEXTS
  const isAskingLong = useLasting(isAsking)
  return (
    <div class="status-line">
      <span role="status" class={failure === undefined ? '' : 'bad'}>
        {failure !== undefined
          ? texts.noActivity + messageOf(failure)
          : isAskingLong
            ? texts.asking
            : selection === undefined
              ? texts.nothing
              : `${texts.selected}: ${durationText(selection.toNs - selection.fromNs)}`}
        {silent.size === 0 ? null : (
          <span class="bad">
            {' '}
            {listText([...silent])}: {texts.silent}
          </span>
        )}
        {unasked === 0 ? null : <span class="warning"> {texts.unasked(unasked)}</span>}
      </span>
      {selection === undefined ? null : <SelectedEnds {...selection} />}
      <ul class="legend" aria-hidden="true">
        {texts.legend.map((name) => (
          <li key={name} data-mark={name}>
            {name}
          </li>
        ))}
      </ul>
    </div>
  )
}

/** Shown in the page's zone, and copied in an unambiguous form. */
function SelectedEnds({ fromNs, toNs }: TimeView) {
  const { zone } = useSurroundings()
  return (
    <span class="selected-ends">
      <Value text={isoText(fromNs)} shown={instantText(fromNs, zone)} />
      <span class="quiet">{TEXTS.timeline.to}</span>
      <Value text={isoText(toNs)} shown={instantText(toNs, zone)} />
    </span>
  )
}
