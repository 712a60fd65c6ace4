/** The picture of the lanes, and what hands do to it: wheel, drag, keys. */
import { useEffect, useRef } from 'preact/hooks'
import { instantText, nowNs } from '../base/instants.ts'
import { TEXTS } from '../texts.ts'
import { AXIS_PX, drawScene, readColours, type Scene } from './draw-lanes.ts'
import { instantAt, moved, placeOf, type TimeView, zoomed } from './time-view.ts'

export interface LaneCanvasProps extends Omit<Scene, 'nowNs'> {
  readonly theme: string
  readonly onView: (view: TimeView) => void
  /** A step is one that the button "back" knows. */
  readonly onSelect: (selection: TimeView | undefined, isStep: boolean) => void
  readonly onCursor: (ns: bigint | undefined) => void
  readonly onAll: () => void
  readonly onFollow: () => void
}

/** A wheel's step doubles or halves the span in about five. */
const WHEEL_FACTOR = 1.0015
const KEY_FACTOR = 1.5
const KEY_STEP = 0.02
/** So close to its mark an event is named. */
const NAMED_WITHIN_PX = 6
/** A hand that shakes while it clicks does not drag. */
const DRAG_MIN_PX = 3

export function LaneCanvas(props: LaneCanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const latest = useRef(props)
  latest.current = props
  const { widthPx, heightPx, cursorNs, zone } = props
  useDrawing(canvas, latest, props)
  useWheel(canvas, latest)
  const pointerY = useRef(-1)
  const drag = useDrag(latest, pointerY)
  return (
    <div
      class="lane-canvas"
      role="application"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: an application takes keys
      tabIndex={0}
      aria-label={TEXTS.timeline.canvas}
      aria-describedby="timeline-help"
      data-events={props.lanes.reduce((sum, { events }) => sum + events.length, 0)}
      onKeyDown={(event) => onKey(event, latest.current)}
      {...drag}
    >
      <canvas ref={canvas} style={{ width: `${widthPx}px`, height: `${heightPx}px` }} />
      <span class="cursor-text" aria-live="polite">
        {cursorNs === undefined
          ? ''
          : [instantText(cursorNs, zone), ...eventsAt(props, pointerY.current)].join('  ')}
      </span>
    </div>
  )
}

/** What happened where the pointer is. */
function eventsAt(
  { lanes, lanePx, scrolledPx, view, widthPx, cursorNs }: LaneCanvasProps,
  pointerY: number,
): readonly string[] {
  const lane = lanes[Math.floor((pointerY - AXIS_PX + scrolledPx) / lanePx)]
  if (lane === undefined || pointerY < AXIS_PX || cursorNs === undefined) return []
  const cursor = placeOf(view, cursorNs)
  const near = lane.events.filter(
    ({ atNs }) => Math.abs(placeOf(view, atNs) - cursor) * widthPx <= NAMED_WITHIN_PX,
  )
  return [...new Set(near.map(({ kind }) => kind))]
}

/** Once for each frame of the screen, however often something changes. */
function useDrawing(
  canvas: { readonly current: HTMLCanvasElement | null },
  latest: { readonly current: LaneCanvasProps },
  props: LaneCanvasProps,
): void {
  const wanted = useRef(0)
  useEffect(() => {
    cancelAnimationFrame(wanted.current)
    wanted.current = requestAnimationFrame(() => {
      const element = canvas.current
      const context = element?.getContext('2d', { alpha: false })
      if (!element || !context) return
      const scale = window.devicePixelRatio
      const { widthPx, heightPx } = latest.current
      const [width, height] = [Math.round(widthPx * scale), Math.round(heightPx * scale)]
      if (element.width !== width || element.height !== height) Object.assign(element, { width, height })
      context.setTransform(scale, 0, 0, scale, 0, 0)
      drawScene(context, { ...latest.current, nowNs: nowNs() }, readColours(element))
    })
  }, [props])
}

/** Not by an attribute: only a listener that is not passive may keep the page from scrolling. */
function useWheel(
  canvas: { readonly current: HTMLCanvasElement | null },
  latest: { readonly current: LaneCanvasProps },
): void {
  useEffect(() => {
    const element = canvas.current
    if (element === null) return
    const onWheel = (event: WheelEvent): void => {
      event.preventDefault()
      const { view, widthPx, onView } = latest.current
      const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)
      const delta = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1
      if (isSideways) onView(moved(view, ((event.deltaX || event.deltaY) * delta) / widthPx))
      else
        onView(zoomed(view, WHEEL_FACTOR ** (event.deltaY * delta), instantAt(view, event.offsetX / widthPx)))
    }
    element.addEventListener('wheel', onWheel, { passive: false })
    return () => element.removeEventListener('wheel', onWheel)
  }, [])
}

interface Drag {
  readonly startPx: number
  readonly anchorNs: bigint
  readonly view: TimeView
  readonly isMove: boolean
  /** "Back" leads to what was marked before the drag, and not to each place of it. */
  isMarked: boolean
}

function useDrag(latest: { readonly current: LaneCanvasProps }, pointerY: { current: number }) {
  const drag = useRef<Drag | undefined>(undefined)
  const placePx = (event: PointerEvent): number =>
    event.clientX - (event.currentTarget as HTMLElement).getBoundingClientRect().left
  const nsAt = (px: number): bigint => instantAt(latest.current.view, px / latest.current.widthPx)
  return {
    onPointerDown: (event: PointerEvent): void => {
      if (event.button > 1) return
      ;(event.currentTarget as HTMLElement).setPointerCapture(event.pointerId)
      const startPx = placePx(event)
      const isMove = event.button === 1 || event.altKey
      drag.current = { startPx, anchorNs: nsAt(startPx), view: latest.current.view, isMove, isMarked: false }
    },
    onPointerMove: (event: PointerEvent): void => {
      const px = placePx(event)
      const { current } = drag
      pointerY.current = event.clientY - (event.currentTarget as HTMLElement).getBoundingClientRect().top
      if (current === undefined) {
        latest.current.onCursor(nsAt(px))
      } else if (current.isMove) {
        latest.current.onView(moved(current.view, (current.startPx - px) / latest.current.widthPx))
      } else if (Math.abs(px - current.startPx) >= DRAG_MIN_PX) {
        latest.current.onSelect(ordered(current.anchorNs, nsAt(px)), !current.isMarked)
        current.isMarked = true
      }
    },
    onPointerUp: (event: PointerEvent): void => {
      const { current } = drag
      drag.current = undefined
      const px = placePx(event)
      if (current === undefined || current.isMove || Math.abs(px - current.startPx) < DRAG_MIN_PX) return
      latest.current.onSelect(ordered(current.anchorNs, nsAt(px)), !current.isMarked)
    },
    /** The browser took the finger to scroll: what follows is no drag. */
    onPointerCancel: (): void => {
      drag.current = undefined
    },
    onPointerLeave: (): void => {
      pointerY.current = -1
      if (drag.current === undefined) latest.current.onCursor(undefined)
    },
  }
}

export function ordered(a: bigint, b: bigint): TimeView {
  return a <= b ? { fromNs: a, toNs: b } : { fromNs: b, toNs: a }
}

function onKey(event: KeyboardEvent, props: LaneCanvasProps): void {
  const act = actionOf(event, props)
  if (act === undefined || event.ctrlKey || event.metaKey) return
  event.preventDefault()
  act()
}

function actionOf(event: KeyboardEvent, props: LaneCanvasProps): (() => void) | undefined {
  const { view, selection, onView, onSelect, onCursor, onAll, onFollow } = props
  const cursorNs = props.cursorNs ?? instantAt(view, 0.5)
  const step = event.shiftKey ? KEY_STEP * 5 : KEY_STEP
  const byKey: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => moveCursor(props, cursorNs, -step),
    ArrowRight: () => moveCursor(props, cursorNs, step),
    '+': () => onView(zoomed(view, 1 / KEY_FACTOR, cursorNs)),
    '=': () => onView(zoomed(view, 1 / KEY_FACTOR, cursorNs)),
    '-': () => onView(zoomed(view, KEY_FACTOR, cursorNs)),
    PageUp: () => onView(moved(view, -0.9)),
    PageDown: () => onView(moved(view, 0.9)),
    Home: () => onCursor(view.fromNs),
    End: () => onCursor(view.toNs - 1n),
    Enter: () => {
      onCursor(cursorNs)
      // The first Enter marks the begin, the second one the end.
      if (selection === undefined || selection.fromNs !== selection.toNs)
        return onSelect({ fromNs: cursorNs, toNs: cursorNs }, true)
      onSelect(ordered(selection.fromNs, cursorNs), true)
    },
    Escape: () => onSelect(undefined, true),
    '0': onAll,
    f: onFollow,
  }
  return byKey[event.key]
}

/** Behind the edge the view follows. */
function moveCursor({ view, onView, onCursor }: LaneCanvasProps, cursorNs: bigint, ratio: number): void {
  const next = cursorNs + BigInt(Math.round(Number(view.toNs - view.fromNs) * ratio))
  onCursor(next)
  if (next < view.fromNs || next >= view.toNs) onView(moved(view, ratio))
}
