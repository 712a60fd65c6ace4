/** One lane per device; a range is selected in them, and the download builder next to them uses it. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { useAsked } from '../base/asked.ts'
import { type DeviceReport, useDevices } from '../base/devices.ts'
import { GAP, useHeardEvents } from '../base/heard-events.ts'
import { NS_PER_S, nowNs } from '../base/instants.ts'
import { changed, currentState, showState, usePageState } from '../base/page-url.ts'
import { may } from '../base/session.ts'
import { DownloadBuilder } from '../download/download-builder.tsx'
import { useSurroundings } from '../parts/context.ts'
import { Empty, Failure, Waiting } from '../parts/notice.tsx'
import { useSeenRows } from '../parts/virtual-rows.ts'
import { TEXTS } from '../texts.ts'
import { AlertDevices } from './alert-devices.tsx'
import { CaptureList } from './capture-list.tsx'
import type { CaptureSpan } from './capture-spans.ts'
import { askCaptures } from './captures.ts'
import { lanePxOf, visibleLanes } from './draw-lanes.ts'
import { askFirstView } from './first-view.ts'
import { type ActivityCache, activityKey, askActivity } from './lane-activity.ts'
import { LaneField } from './lane-field.tsx'
import { chosenDevices } from './lane-names.tsx'
import { readSelection } from './selection.ts'
import { useShownView } from './shown-view.ts'
import { SearchField, SearchResult, useSightingSearch } from './sighting-search.tsx'
import { type Sighting, sightingAt } from './sightings.ts'
import { StatusLine } from './status-line.tsx'
import { type TimeView, viewAround } from './time-view.ts'
import { TimelineControls } from './timeline-controls.tsx'

const DEVICES_EVERY_MS = 10_000
/** Intermediate zoom levels are not requested. */
const SETTLED_MS = 120
/** Maximum number of devices per call. */
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
      <Lanes devices={devices.value} oldestNs={oldestNs} />
      {may(session, 'capture:download') ? <DownloadBuilder /> : null}
    </>
  )
}

interface LanesProps {
  readonly devices: readonly DeviceReport[]
  readonly oldestNs: bigint
}

function Lanes({ devices, oldestNs }: LanesProps) {
  const { values } = usePageState()
  const { session } = useSurroundings()
  const search = useSightingSearch()
  const shown = useShownView(askFirstView)
  const { view, isFollowing, setFollowing } = shown
  const filter = values['lane-filter'] ?? ''
  const isSelectedOnly = values.lanes === 'selected'
  const shownNames = useShownNames(devices, { filter, chosen: isSelectedOnly ? chosenDevices(values) : [] })
  const scroller = useRef<HTMLDivElement>(null)
  const seen = useSeenRows(scroller, (heightPx) => lanePxOf(heightPx, shownNames.length), shownNames.length)
  const [pane, setPane] = useState<HTMLDivElement | null>(null)
  const widthPx = useWidth(pane)
  const visible = shownNames.slice(...visibleLanes({ ...seen, lanePx: seen.rowPx }, shownNames.length))
  const asked = visible.slice(0, DEVICES_ASKED_MAX)
  const { activity, captures, cache } = useLaneAnswers(view, asked, widthPx)
  const lanes = useLanes(shownNames, search.found.sightings, captures.value?.captures)
  const silent = new Set([...(activity.value?.keys() ?? []), ...(captures.value?.failures.keys() ?? [])])
  const [dragged, setDragged] = useState<TimeView | undefined>()
  const selection = dragged ?? readSelection(values)
  const go = (next: TimeView): void => {
    setFollowing(false)
    shown.setView(next)
  }
  const goTo = (sighting: Sighting): void => {
    selectSighting(sighting)
    go(viewAround(sighting.fromNs, sighting.toNs))
  }
  const goAll = (): void => go(viewAround(oldestNs, nowNs()))
  const found = useMemo(
    () => (
      <CaptureList
        found={captures.value}
        isAsking={captures.isAsking}
        onChoose={({ device, fromNs, toNs }) => {
          select({ fromNs, toNs }, device)
          go(viewAround(fromNs, toNs))
        }}
      />
    ),
    // A long list is not rendered again during a drag.
    [captures.value, captures.isAsking],
  )
  return (
    <section class="lanes" aria-label={TEXTS.timeline.title}>
      <h1 class="hidden">{TEXTS.timeline.title}</h1>
      <TimelineControls
        {...{ shown, selection, filter, isSelectedOnly, go, goAll }}
        hasSelected={isSelectedOnly || chosenDevices(values).length > 0}
        onStored={() => {
          activity.again()
          captures.again()
        }}
      />
      {may(session, 'capture:download') ? (
        <>
          <SearchField addresses={search.addresses} />
          <AlertDevices />
        </>
      ) : null}
      <LaneField
        {...{ scroller, setPane, seen, view, lanes, silent, selection, widthPx }}
        activity={cache}
        onView={go}
        onDrag={setDragged}
        onSelect={select}
        onPoint={({ ns, lane }) => {
          const { sightings = [] } = lanes[lane ?? lanes.length] ?? {}
          const sighting = sightingAt(sightings, ns, { view, widthPx })
          if (sighting !== undefined) selectSighting(sighting)
        }}
        onAll={goAll}
        onFollow={() => setFollowing(!isFollowing)}
      />
      <StatusLine
        isAsking={activity.isAsking}
        failure={activity.failure ?? captures.failure}
        unasked={visible.length - asked.length}
        {...{ silent, selection }}
      />
      <SearchResult search={search} onChoose={goTo} />
      {found}
      <p id="timeline-help" class="help">
        {TEXTS.timeline.help}
      </p>
    </section>
  )
}

/** With a device, also selects it, and no other. */
function select(next: TimeView | undefined, device?: string): void {
  const ends = { TSBegin: next && String(next.fromNs), TSEnd: next && String(next.toNs) }
  const whole = device === undefined ? ends : { ...ends, Device: device }
  showState(changed(currentState(), whole), { isStep: true })
}

/** Selects the packets of a sighting, at its device. */
function selectSighting({ device, address, fromNs, toNs }: Sighting): void {
  const packets = { FilterAddresses: address, FilterBPF: undefined, FilterBPFDecap: undefined }
  const range = { Device: device, TSBegin: String(fromNs), TSEnd: String(toNs) }
  showState(changed(currentState(), { ...range, ...packets }), { isStep: true })
}

/** The gateway's data for the visible lanes. */
function useLaneAnswers(view: TimeView, devices: readonly string[], widthPx: number) {
  const { session } = useSurroundings()
  const cache = useRef<ActivityCache>(new Map())
  const ask = { view, devices, widthPx, isFiltered: session.bounds.filters.length > 0 }
  const when = { key: activityKey(ask), delayMs: SETTLED_MS }
  const activity = useAsked((signal) => askActivity(ask, cache.current, signal), when)
  const captures = useAsked((signal) => askCaptures(devices, view, signal), when)
  return { activity, captures, cache: cache.current }
}

function useLanes(
  names: readonly string[],
  sightings: readonly Sighting[],
  captures: readonly CaptureSpan[] = NO_CAPTURES,
) {
  const { events } = useSurroundings()
  const heard = useHeardEvents(events).events
  const eventsOf = useMemo(
    () => Map.groupBy(heard, ({ device, kind }) => (kind === GAP ? undefined : device)),
    [heard],
  )
  const sightingsOf = useMemo(() => Map.groupBy(sightings, ({ device }) => device), [sightings])
  const capturesOf = useMemo(() => Map.groupBy(captures, ({ device }) => device), [captures])
  return useMemo(
    () =>
      names.map((device) => ({
        device,
        captures: capturesOf.get(device) ?? [],
        events: eventsOf.get(device) ?? [],
        sightings: sightingsOf.get(device) ?? [],
      })),
    [names, capturesOf, eventsOf, sightingsOf],
  )
}

interface WantedLanes {
  /** Text in names or sites. */
  readonly filter: string
  /** If some of them exist, only these. */
  readonly chosen: readonly string[]
}

/** The same array while its elements are the same. */
function useShownNames(devices: readonly DeviceReport[], { filter, chosen }: WantedLanes): readonly string[] {
  const wanted = filter.toLowerCase()
  const only = new Set(chosen)
  const selected = devices.filter(({ name }) => only.has(name))
  const names = (selected.length > 0 ? selected : devices)
    .filter(({ name, site }) => `${name} ${site ?? ''}`.toLowerCase().includes(wanted))
    .map(({ name }) => name)
  return useMemo(() => names, [names.join()])
}

const NO_CAPTURES: readonly CaptureSpan[] = []

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
