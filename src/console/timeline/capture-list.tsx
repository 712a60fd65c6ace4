/** The captures in the visible time range, including those that are too short to be seen. */
import { bytesText, countText } from '../../shared/base/amounts.ts'
import { durationText, instantText } from '../base/instants.ts'
import { useSurroundings } from '../parts/context.ts'
import { CopyBeside } from '../parts/copied.tsx'
import { Waiting } from '../parts/notice.tsx'
import { TEXTS } from '../texts.ts'
import type { CaptureSpan } from './capture-spans.ts'
import type { FoundCaptures } from './captures.ts'

interface CaptureListProps {
  readonly found: FoundCaptures | undefined
  /** `found` may be of another time range. */
  readonly isAsking: boolean
  readonly onChoose: (capture: CaptureSpan) => void
}

export function CaptureList({ found, isAsking, onChoose }: CaptureListProps) {
  const { zone } = useSurroundings()
  if (found === undefined) return null
  const { captures, isCut } = found
  // An empty list must not be claimed before its time range has been asked for.
  if (captures.length === 0 && isAsking) return <Waiting />
  return (
    <details class="capture-list" open>
      <summary>
        {TEXTS.timeline.captures} <span class="quiet">{TEXTS.timeline.inSight(captures.length)}</span>
        {isCut ? <span class="warning"> {TEXTS.timeline.cut(captures.length)}</span> : null}
      </summary>
      {captures.length === 0 ? (
        <p class="empty">{TEXTS.timeline.noCaptures}</p>
      ) : (
        <ul aria-label={TEXTS.timeline.captures}>
          {captures.map((capture) => (
            <li key={`${capture.device} ${capture.name}`}>
              <button type="button" onClick={() => onChoose(capture)}>
                <span class="name">{capture.name}</span>
                <span>{capture.device}</span>
                <span class="mono">{instantText(capture.fromNs, zone, 0)}</span>
                <span class="mono">
                  {capture.isActive ? TEXTS.timeline.runs : durationText(capture.toNs - capture.fromNs)}
                </span>
                <span class="mono number">{capture.packets === null ? '–' : countText(capture.packets)}</span>
                <span class="mono number">{capture.bytes === null ? '–' : bytesText(capture.bytes)}</span>
              </button>
              <CopyBeside text={capture.name} />
            </li>
          ))}
        </ul>
      )}
    </details>
  )
}
