/** Interaction with the lanes: wheel, drag, keys. */
import { AXIS_PX } from './draw-axis.ts'
import type { Cursor, Scene } from './draw-lanes.ts'
import { instantAt, moved, ordered, type TimeView, zoomed } from './time-view.ts'

/** The state of the lanes, and the callbacks. */
export interface Touched extends Omit<Scene, 'activity' | 'silent' | 'zone' | 'nowNs'> {
  readonly onView: (view: TimeView) => void
  /** Called during a drag; undefined: the drag was cancelled. */
  readonly onDrag: (selection: TimeView | undefined) => void
  /** One step for the "back" button. */
  readonly onSelect: (selection: TimeView | undefined) => void
  /** Called for a click that was no drag. */
  readonly onPoint: (cursor: Cursor) => void
  readonly onCursor: (cursor: Cursor | undefined) => void
  readonly onAll: () => void
  readonly onFollow: () => void
}

/** The current state at the time of each event. */
export interface Latest {
  readonly current: Touched
}

/** It takes about five wheel steps to double or halve the span. */
const WHEEL_FACTOR = 1.0015
const KEY_FACTOR = 1.5
const KEY_STEP = 0.02
/** A slightly shaky click is not a drag. */
const DRAG_MIN_PX = 3
const LINE_PX = 16
/** DOM_DELTA_LINE of WheelEvent. */
const BY_LINES = 1

export function turnWheel(event: WheelEvent, { view, widthPx, onView }: Touched): void {
  event.preventDefault()
  const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)
  const delta = event.deltaMode === BY_LINES ? LINE_PX : 1
  if (isSideways) onView(moved(view, ((event.deltaX || event.deltaY) * delta) / widthPx))
  else onView(zoomed(view, WHEEL_FACTOR ** (event.deltaY * delta), instantAt(view, event.offsetX / widthPx)))
}

interface Drag {
  readonly startPx: number
  readonly anchorNs: bigint
  readonly view: TimeView
  readonly isMove: boolean
}

/** Pointer handlers. The drag is shown while it lasts, and takes effect when it ends. */
export function dragHands(latest: Latest) {
  let drag: Drag | undefined
  const nsAt = (px: number): bigint => instantAt(latest.current.view, px / latest.current.widthPx)
  const cursorAt = ({ xPx, yPx }: Place): Cursor => ({
    ns: nsAt(xPx),
    lane: laneAt(latest.current, yPx),
    isByKeys: false,
  })
  const point = (place: Place): void => latest.current.onCursor(cursorAt(place))
  const selectionOf = ({ anchorNs, startPx }: Drag, px: number): TimeView | undefined =>
    Math.abs(px - startPx) < DRAG_MIN_PX
      ? undefined
      : ordered(roundedTo(latest.current, anchorNs), roundedTo(latest.current, nsAt(px)))
  return {
    onPointerDown: (event: PointerEvent): void => {
      if (event.button > 1) return
      ;(event.currentTarget as HTMLElement).setPointerCapture(event.pointerId)
      const place = placeIn(event)
      const startPx = place.xPx
      const isMove = event.button === 1 || event.altKey
      drag = { startPx, anchorNs: nsAt(startPx), view: latest.current.view, isMove }
      point(place)
    },
    onPointerMove: (event: PointerEvent): void => {
      const place = placeIn(event)
      const { xPx } = place
      const { onView, onDrag, widthPx } = latest.current
      point(place)
      if (drag?.isMove) onView(moved(drag.view, (drag.startPx - xPx) / widthPx))
      else if (drag !== undefined) onDrag(selectionOf(drag, xPx))
    },
    onPointerUp: (event: PointerEvent): void => {
      const place = placeIn(event)
      const isSelecting = drag !== undefined && !drag.isMove
      const selection = drag === undefined || drag.isMove ? undefined : selectionOf(drag, place.xPx)
      drag = undefined
      latest.current.onDrag(undefined)
      if (selection !== undefined) latest.current.onSelect(selection)
      else if (isSelecting) latest.current.onPoint(cursorAt(place))
    },
    /** The browser claimed the touch for scrolling: what follows is not a drag. */
    onPointerCancel: (): void => {
      drag = undefined
      latest.current.onDrag(undefined)
    },
    /** A touch leaves with each tap, but what it points at must stay readable. */
    onPointerLeave: ({ pointerType }: PointerEvent): void => {
      if (drag === undefined && pointerType !== 'touch') latest.current.onCursor(undefined)
    },
  }
}

/** An end of a drag with no more digits than a pixel can tell apart. */
function roundedTo({ view, widthPx }: Pick<Touched, 'view' | 'widthPx'>, ns: bigint): bigint {
  const nsPerPx = (view.toNs - view.fromNs) / BigInt(Math.max(1, Math.round(widthPx)))
  const stepNs = 10n ** BigInt(String(nsPerPx).length - 1)
  return ((ns + stepNs / 2n) / stepNs) * stepNs
}

interface Place {
  readonly xPx: number
  readonly yPx: number
}

function placeIn(event: PointerEvent): Place {
  const { left, top } = (event.currentTarget as HTMLElement).getBoundingClientRect()
  return { xPx: event.clientX - left, yPx: event.clientY - top }
}

function laneAt({ lanes, lanePx, scrolledPx }: Touched, yPx: number): number | undefined {
  const index = Math.floor((yPx - AXIS_PX + scrolledPx) / lanePx)
  return yPx >= AXIS_PX && index < lanes.length ? index : undefined
}

export function pressKey(event: KeyboardEvent, touched: Touched): void {
  const act = actionOf(event, touched)
  if (act === undefined || event.ctrlKey || event.metaKey) return
  event.preventDefault()
  act()
}

function actionOf(event: KeyboardEvent, touched: Touched): (() => void) | undefined {
  const { view, selection, onView, onSelect, onCursor, onAll, onFollow } = touched
  const cursor = keyCursor(touched)
  const step = event.shiftKey ? KEY_STEP * 5 : KEY_STEP
  const byKey: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => moveCursor(touched, cursor, -step),
    ArrowRight: () => moveCursor(touched, cursor, step),
    ArrowUp: () => onCursor({ ...cursor, lane: Math.max(0, cursor.lane - 1) }),
    ArrowDown: () => onCursor({ ...cursor, lane: Math.min(touched.lanes.length - 1, cursor.lane + 1) }),
    '+': () => onView(zoomed(view, 1 / KEY_FACTOR, cursor.ns)),
    '=': () => onView(zoomed(view, 1 / KEY_FACTOR, cursor.ns)),
    '-': () => onView(zoomed(view, KEY_FACTOR, cursor.ns)),
    PageUp: () => onView(moved(view, -0.9)),
    PageDown: () => onView(moved(view, 0.9)),
    Home: () => onCursor({ ...cursor, ns: view.fromNs }),
    End: () => onCursor({ ...cursor, ns: view.toNs - 1n }),
    Enter: () => {
      onCursor(cursor)
      // The first Enter marks the beginning, the second the end.
      if (selection === undefined || selection.fromNs !== selection.toNs)
        return onSelect({ fromNs: cursor.ns, toNs: cursor.ns })
      onSelect(ordered(selection.fromNs, cursor.ns))
    },
    Escape: () => onSelect(undefined),
    '0': onAll,
    f: onFollow,
  }
  return byKey[event.key]
}

/** Its position, else the middle of the first visible lane. */
function keyCursor({ view, cursor, scrolledPx, lanePx }: Touched): Cursor & { readonly lane: number } {
  return {
    ns: cursor?.ns ?? instantAt(view, 0.5),
    lane: cursor?.lane ?? Math.ceil(scrolledPx / lanePx),
    isByKeys: true,
  }
}

/** Moves the cursor by a share of the view, which scrolls if it reaches an edge. */
function moveCursor({ view, onView, onCursor }: Touched, cursor: Cursor, ratio: number): void {
  const ns = cursor.ns + BigInt(Math.round(Number(view.toNs - view.fromNs) * ratio))
  onCursor({ ...cursor, ns })
  if (ns < view.fromNs || ns >= view.toNs) onView(moved(view, ratio))
}
