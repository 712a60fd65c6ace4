/** Above the lanes: selection of devices and time. */
import { NS_PER_S, nowNs } from '../base/instants.ts'
import { changed, currentState, showState } from '../base/page-url.ts'
import { TEXTS } from '../texts.ts'
import { UploadButton } from '../upload/upload-button.tsx'
import type { ShownView } from './shown-view.ts'
import { type TimeView, viewAround, zoomed } from './time-view.ts'

interface ControlsProps {
  readonly shown: ShownView
  readonly selection: TimeView | undefined
  readonly filter: string
  /** Whether only the lanes of selected devices are shown. */
  readonly isSelectedOnly: boolean
  readonly hasSelected: boolean
  readonly go: (view: TimeView) => void
  readonly goAll: () => void
  /** Called after a file has become a capture. */
  readonly onStored: () => void
}

/** Ranges until now. */
const LAST_SPANS = {
  '15 min': 900n,
  '1 h': 3_600n,
  '24 h': 86_400n,
  '7 d': 604_800n,
  '30 d': 2_592_000n,
} as const

export function TimelineControls({
  shown,
  selection,
  filter,
  isSelectedOnly,
  hasSelected,
  go,
  goAll,
  onStored,
}: ControlsProps) {
  const { timeline: texts } = TEXTS
  const { view, isFollowing, setFollowing } = shown
  const middleNs = (view.fromNs + view.toNs) / 2n
  const showLast = (spanS: bigint): void => {
    const toNs = nowNs()
    shown.setView({ fromNs: toNs - spanS * NS_PER_S, toNs })
    setFollowing(true)
  }
  return (
    <div class="controls">
      <input
        type="search"
        aria-label={texts.searchDevice}
        placeholder={texts.searchDevice}
        value={filter}
        onInput={(event) => showState(changed(currentState(), { 'lane-filter': event.currentTarget.value }))}
      />
      <button type="button" aria-pressed={isFollowing} onClick={() => setFollowing(!isFollowing)}>
        {texts.follow}
      </button>
      <span class="group">
        <span class="quiet">{texts.last}</span>
        {Object.entries(LAST_SPANS).map(([name, spanS]) => (
          <button key={name} type="button" onClick={() => showLast(spanS)}>
            {name}
          </button>
        ))}
      </span>
      <span class="group">
        <button
          type="button"
          aria-label={texts.zoomOut}
          title={texts.zoomOut}
          onClick={() => go(zoomed(view, 2, middleNs))}
        >
          −
        </button>
        <button
          type="button"
          aria-label={texts.zoomIn}
          title={texts.zoomIn}
          onClick={() => go(zoomed(view, 0.5, middleNs))}
        >
          +
        </button>
        <button type="button" onClick={goAll}>
          {texts.all}
        </button>
        {selection === undefined ? null : (
          <button type="button" onClick={() => go(viewAround(selection.fromNs, selection.toNs))}>
            {texts.toSelection}
          </button>
        )}
      </span>
      {hasSelected ? (
        <button
          type="button"
          aria-pressed={isSelectedOnly}
          onClick={() =>
            showState(changed(currentState(), { lanes: isSelectedOnly ? undefined : 'selected' }))
          }
        >
          {texts.selectedOnly}
        </button>
      ) : null}
      <UploadButton takesDrops onStored={onStored} />
    </div>
  )
}
