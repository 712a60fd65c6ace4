/** The lanes with their names, and what is below the cursor. */
import type { RefObject } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { useSurroundings } from '../parts/context.ts'
import type { SeenRows } from '../parts/virtual-rows.ts'
import { TEXTS } from '../texts.ts'
import { AXIS_PX } from './draw-axis.ts'
import type { Cursor, Lane } from './draw-lanes.ts'
import { LaneCanvas, type LaneCanvasProps } from './lane-canvas.tsx'
import { LaneNames } from './lane-names.tsx'
import { pointedInstant, valuesAt, valueTexts } from './lane-values.ts'
import { placeOf } from './time-view.ts'

type Drawn = Omit<
  LaneCanvasProps,
  'zone' | 'theme' | 'cursor' | 'onCursor' | 'heightPx' | 'lanePx' | 'scrolledPx'
>

export interface LaneFieldProps extends Drawn {
  readonly scroller: RefObject<HTMLDivElement | null>
  readonly setPane: (element: HTMLDivElement | null) => void
  readonly seen: SeenRows
}

/** Only this component knows the cursor: the others need not be rendered again with each of its moves. */
export function LaneField({ scroller, setPane, seen, ...drawn }: LaneFieldProps) {
  const { zone, theme } = useSurroundings()
  const [cursor, setCursor] = useState<Cursor | undefined>()
  const { lanes, activity, view } = drawn
  const { heightPx, scrolledPx, rowPx: lanePx } = seen
  useEffect(() => {
    if (cursor?.isByKeys && cursor.lane !== undefined)
      scrollTo(scroller.current, cursor.lane * lanePx, lanePx)
  }, [cursor])
  return (
    <>
      <div class="lane-scroller" ref={scroller} tabIndex={-1}>
        <div class="lane-pane" style={{ height: `${AXIS_PX + lanes.length * lanePx}px` }}>
          <LaneNames names={lanes.map(({ device }) => device)} {...{ seen, activity, view }} />
          <div class="lane-picture" ref={setPane} style={{ height: `${heightPx}px` }}>
            <LaneCanvas
              {...drawn}
              {...{ zone, theme, cursor, heightPx, lanePx, scrolledPx }}
              onCursor={setCursor}
            />
          </div>
        </div>
      </div>
      {/* Pointer moves are too frequent for a screen reader to announce them. */}
      <p class="readout mono" aria-live={cursor?.isByKeys ? 'polite' : 'off'}>
        {cursor === undefined ? (
          <span class="quiet">{TEXTS.timeline.point}</span>
        ) : (
          readout({ ...drawn, zone, cursor }).map((text, index) => <span key={index}>{text}</span>)
        )}
      </p>
    </>
  )
}

function scrollTo(scroller: HTMLElement | null, topPx: number, lanePx: number): void {
  if (scroller === null) return
  const lowestPx = topPx + lanePx + AXIS_PX - scroller.clientHeight
  if (topPx < scroller.scrollTop) scroller.scrollTop = topPx
  else if (scroller.scrollTop < lowestPx) scroller.scrollTop = lowestPx
}

/** Distance at which an event is named. */
const NAMED_WITHIN_PX = 6

type Pointed = Pick<LaneCanvasProps, 'lanes' | 'activity' | 'view' | 'widthPx' | 'zone'> & {
  readonly cursor: Cursor
}

function readout({ lanes, activity, cursor, ...scale }: Pointed): readonly string[] {
  const instant = pointedInstant(cursor.ns, scale)
  const lane = cursor.lane === undefined ? undefined : lanes[cursor.lane]
  if (lane === undefined) return [instant]
  const told = activity.get(lane.device)
  const values = told && valuesAt(told, cursor.ns)
  return [instant, lane.device, ...(values ? valueTexts(values) : []), ...eventsAt(lane, cursor, scale)]
}

function eventsAt(
  { events }: Lane,
  { ns }: Cursor,
  { view, widthPx }: Pick<Pointed, 'view' | 'widthPx'>,
): readonly string[] {
  const near = events.filter(
    ({ atNs }) => Math.abs(placeOf(view, atNs) - placeOf(view, ns)) * widthPx <= NAMED_WITHIN_PX,
  )
  return [...new Set(near.map(({ kind }) => kind))]
}
