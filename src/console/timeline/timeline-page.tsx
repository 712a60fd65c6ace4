/** One lane for each device; a range is marked in them, and the download builder beside says what becomes of it. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { messageOf } from '../base/ask-gateway.ts'
import { useAsked } from '../base/asked.ts'
import { useDevices } from '../base/devices.ts'
import { GAP, useHeardEvents } from '../base/heard-events.ts'
import { durationText, NS_PER_S, nowNs } from '../base/instants.ts'
import { changed, currentState, showState, usePageState } from '../base/page-url.ts'
import { may } from '../base/session.ts'
import { DownloadBuilder } from '../download/download-builder.tsx'
import { useSurroundings } from '../parts/context.ts'
import { Empty, Failure, Waiting } from '../parts/notice.tsx'
import { useSeenRows } from '../parts/virtual-rows.ts'
import { TEXTS } from '../texts.ts'
import { CaptureList } from './capture-list.tsx'
import { askCaptures } from './captures.ts'
import { AXIS_PX, lanePxOf, visibleLanes } from './draw-lanes.ts'
import { type ActivityCache, activityKey, askActivity } from './lane-activity.ts'
import { LaneCanvas } from './lane-canvas.tsx'
import { LaneNames } from './lane-names.tsx'
import { readSelection } from './selection.ts'
import { type TimeView, viewAround, zoomed } from './time-view.ts'

const DEVICES_EVERY_MS = 10_000
/** Nobody asks for what is zoomed through. */
const SETTLED_MS = 120
const URL_MS = 250
/** A call names so many devices at most. */
const DEVICES_ASKED_MAX = 64

export function TimelinePage() {
  const { session } = useSurroundings()
  const devices = useDevices(DEVICES_EVERY_MS)
  if (devices.value === undefined)
    return devices.failure === undefined ? (
      <Waiting />
    ) : (
      <Failure failure={devices.failure} again={devices.again} />
    )
  if (devices.value.length === 0) return <Empty>{TEXTS.fleet.noDevices}</Empty>
  const oldestNs = devices.value
    .map(({ oldestPacketNs }) => BigInt(oldestPacketNs ?? 0))
    .filter((ns) => ns > 0n)
    .reduce((oldest, ns) => (ns < oldest ? ns : oldest), nowNs() - 86_400n * NS_PER_S)
  return (
    <>
      <Lanes names={devices.value.map(({ name }) => name)} oldestNs={oldestNs} />
      {may(session, 'capture:download') ? <DownloadBuilder /> : null}
    </>
  )
}

function Lanes({ names, oldestNs }: { readonly names: readonly string[]; readonly oldestNs: bigint }) {
  const { session, zone, theme, events } = useSurroundings()
  const heard = useHeardEvents(events).events
  const marks = useMemo(
    () => Map.groupBy(heard, ({ device, kind }) => (kind === GAP ? undefined : device)),
    [heard],
  )
  const { values } = usePageState()
  const [cursorNs, setCursor] = useState<bigint | undefined>()
  const all = (): TimeView => viewAround(oldestNs, nowNs())
  const { view, setView, isFollowing, setFollowing } = useView(all)
  const filter = values['lane-filter'] ?? ''
  const shownNames = useMemo(() => names.filter((name) => name.includes(filter)), [names.join(), filter])
  const scroller = useRef<HTMLDivElement>(null)
  const seen = useSeenRows(scroller, (heightPx) => lanePxOf(heightPx, shownNames.length), shownNames.length)
  const { heightPx, scrolledPx, rowPx: lanePx } = seen
  const [pane, setPane] = useState<HTMLDivElement | null>(null)
  const widthPx = useWidth(pane)
  const [first, last] = visibleLanes({ scrolledPx, heightPx, lanePx }, shownNames.length)
  const asked = shownNames.slice(first, last).slice(0, DEVICES_ASKED_MAX)
  const cache = useRef<ActivityCache>(new Map())
  const ask = { view, devices: asked, widthPx, isFiltered: session.bounds.filters.length > 0 }
  const activity = useAsked((signal) => askActivity(ask, cache.current, signal), {
    key: activityKey(ask),
    delayMs: SETTLED_MS,
  })
  const captures = useAsked((signal) => askCaptures(asked, view, signal), {
    key: activityKey(ask),
    delayMs: SETTLED_MS,
  })
  const silent = new Set([...(activity.value?.keys() ?? []), ...(captures.value?.failures.keys() ?? [])])
  const selection = readSelection(values)
  const select = (next: TimeView | undefined, isStep: boolean): void =>
    showState(
      changed(currentState(), { TSBegin: next && String(next.fromNs), TSEnd: next && String(next.toNs) }),
      { isStep },
    )
  const lanes = shownNames.map((device) => ({
    device,
    captures: (captures.value?.captures ?? []).filter((capture) => capture.device === device),
    events: marks.get(device) ?? [],
  }))
  const go = (next: TimeView): void => {
    setFollowing(false)
    setView(next)
  }
  const controls = { view, selection, go, all, isFollowing, setFollowing, setView }
  return (
    <section class="lanes" aria-label={TEXTS.timeline.title}>
      <h1 class="hidden">{TEXTS.timeline.title}</h1>
      <TimelineControls {...controls} filter={filter} />
      <div class="lane-scroller" ref={scroller} tabIndex={-1}>
        <div class="lane-pane" style={{ height: `${AXIS_PX + shownNames.length * lanePx}px` }}>
          <LaneNames names={shownNames} seen={seen} />
          <div class="lane-picture" ref={setPane} style={{ height: `${heightPx}px` }}>
            <LaneCanvas
              {...{ view, zone, lanes, selection, cursorNs, widthPx, heightPx, lanePx, scrolledPx, theme }}
              activity={cache.current}
              silent={silent}
              onView={go}
              onSelect={select}
              onCursor={setCursor}
              onAll={() => go(all())}
              onFollow={() => setFollowing(!isFollowing)}
            />
          </div>
        </div>
      </div>
      <StatusLine
        isAsking={activity.isAsking}
        failure={activity.failure ?? captures.failure}
        silent={silent}
        selection={selection}
      />
      <CaptureList
        captures={captures.value?.captures}
        onChoose={(capture) => {
          select({ fromNs: capture.fromNs, toNs: capture.toNs }, true)
          go(viewAround(capture.fromNs, capture.toNs))
        }}
      />
      <p id="timeline-help" class="help">
        {TEXTS.timeline.help}
      </p>
    </section>
  )
}

interface ControlsProps {
  readonly view: TimeView
  readonly selection: TimeView | undefined
  readonly filter: string
  readonly isFollowing: boolean
  readonly go: (view: TimeView) => void
  readonly setView: (view: TimeView) => void
  readonly setFollowing: (isFollowing: boolean) => void
  readonly all: () => TimeView
}

/** Spans until now. */
const LAST_SPANS = {
  '15 min': 900n,
  '1 h': 3_600n,
  '24 h': 86_400n,
  '7 d': 604_800n,
  '30 d': 2_592_000n,
} as const

function TimelineControls({
  view,
  selection,
  filter,
  isFollowing,
  go,
  setView,
  setFollowing,
  all,
}: ControlsProps) {
  const { timeline: texts } = TEXTS
  const middleNs = (view.fromNs + view.toNs) / 2n
  const showLast = (name: string): void => {
    const span = LAST_SPANS[name as keyof typeof LAST_SPANS] * NS_PER_S
    setView({ fromNs: nowNs() - span, toNs: nowNs() })
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
        {Object.keys(LAST_SPANS).map((name) => (
          <button key={name} type="button" onClick={() => showLast(name)}>
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
        <button type="button" onClick={() => go(all())}>
          {texts.all}
        </button>
        {selection === undefined ? null : (
          <button type="button" onClick={() => go(viewAround(selection.fromNs, selection.toNs))}>
            {texts.toSelection}
          </button>
        )}
      </span>
    </div>
  )
}

function StatusLine({
  isAsking,
  failure,
  silent,
  selection,
}: {
  readonly isAsking: boolean
  readonly failure: unknown
  readonly silent: ReadonlySet<string>
  readonly selection: TimeView | undefined
}) {
  const { timeline: texts } = TEXTS
  const text =
    failure !== undefined
      ? texts.noActivity + messageOf(failure)
      : isAsking
        ? texts.asking
        : selection === undefined
          ? texts.nothing
          : `${texts.selected}: ${durationText(selection.toNs - selection.fromNs)}`
  return (
    <div class="status-line">
      <span role="status" class={failure === undefined ? '' : 'bad'}>
        {text}
        {silent.size === 0 ? null : (
          <span class="bad">
            {' '}
            {[...silent].join(', ')}: {texts.silent}
          </span>
        )}
      </span>
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

/** The view as state of the page: while it moves it is drawn, when it rests it stands in the address. */
function useView(all: () => TimeView) {
  const { values } = usePageState()
  const [view, setView] = useState<TimeView>(() => readView(values) ?? startView(values) ?? all())
  const isFollowing = values.follow === '1'
  const setFollowing = (isOn: boolean): void =>
    showState(changed(currentState(), { follow: isOn ? '1' : undefined }))
  const inUrl = `${values['view-from']} ${values['view-to']}`
  const written = useRef(inUrl)
  useEffect(() => {
    const timer = setTimeout(() => {
      const text = { 'view-from': String(view.fromNs), 'view-to': String(view.toNs) }
      written.current = `${text['view-from']} ${text['view-to']}`
      showState(changed(currentState(), text))
    }, URL_MS)
    return () => clearTimeout(timer)
  }, [view])
  useEffect(() => {
    const given = readView(values)
    if (given !== undefined && inUrl !== written.current) setView(given)
  }, [inUrl])
  useEffect(() => {
    if (!isFollowing) return
    const follow = (): void =>
      setView(({ fromNs, toNs }) => ({ fromNs: nowNs() - (toNs - fromNs), toNs: nowNs() }))
    follow()
    const timer = setInterval(follow, 1_000)
    return () => clearInterval(timer)
  }, [isFollowing])
  return { view, setView, isFollowing, setFollowing }
}

type Values = Readonly<Record<string, string>>

function readView(values: Values): TimeView | undefined {
  const [from = '', to = ''] = [values['view-from'], values['view-to']]
  if (!/^\d{1,20}$/.test(from) || !/^\d{1,20}$/.test(to) || BigInt(from) >= BigInt(to)) return undefined
  return { fromNs: BigInt(from), toNs: BigInt(to) }
}

function startView(values: Values): TimeView | undefined {
  const selection = readSelection(values)
  return selection === undefined ? undefined : viewAround(selection.fromNs, selection.toNs)
}

function useWidth(element: HTMLElement | null): number {
  const [width, setWidth] = useState(0)
  useEffect(() => {
    if (element === null) return
    const observer = new ResizeObserver(() => setWidth(element.clientWidth))
    observer.observe(element)
    setWidth(element.clientWidth)
    return () => observer.disconnect()
  }, [element])
  return width
}
