/** Draws the axis: a row of dates and zones, with the marks below. */
import type { Zone } from '../base/instants.ts'
import type { Look } from './lane-look.ts'
import type { TickDate, TimeAxis } from './time-axis.ts'
import { placeOf, type TimeView } from './time-view.ts'

export const AXIS_PX = 38
const DATES_PX = 17
const TICK_PX = 110
const TICKS_MIN = 3
const MARK_PX = 5
const BESIDE_PX = 4
/** Gap between two texts. */
const APART_PX = 10

export interface DrawnAxis {
  readonly view: TimeView
  readonly zone: Zone
  readonly widthPx: number
}

/** How many marks fit; on a phone they are closer, because with two of them none might be within the view. */
export function tickCount(widthPx: number): number {
  return Math.max(TICKS_MIN, widthPx / TICK_PX)
}

/** Lines below the marks, across the lanes. */
export function drawGrid(
  context: CanvasRenderingContext2D,
  { ticks }: TimeAxis,
  { view, widthPx, look, bottomPx }: DrawnAxis & { readonly look: Look; readonly bottomPx: number },
): void {
  for (const { ns, isMajor } of ticks) {
    context.fillStyle = isMajor ? look.line : look.raised
    context.fillRect(Math.round(placeOf(view, ns) * widthPx), AXIS_PX, 1, bottomPx - AXIS_PX)
  }
}

export function drawAxis(
  context: CanvasRenderingContext2D,
  axis: TimeAxis,
  { view, widthPx, look }: DrawnAxis & { readonly look: Look },
): void {
  context.fillStyle = look.panel
  context.fillRect(0, 0, widthPx, AXIS_PX)
  context.fillStyle = look.line
  context.fillRect(0, AXIS_PX - 1, widthPx, 1)
  context.font = look.font
  context.textBaseline = 'middle'
  for (const { ns, label, isMajor } of axis.ticks) {
    const xPx = Math.round(placeOf(view, ns) * widthPx)
    context.fillStyle = look.line
    const topPx = isMajor ? 0 : AXIS_PX - MARK_PX
    context.fillRect(xPx, topPx, 1, AXIS_PX - topPx)
    context.fillStyle = isMajor ? look.text : look.quiet
    const textPx = context.measureText(label).width
    // At the right edge it would be cut off.
    if (xPx + BESIDE_PX + textPx <= widthPx)
      context.fillText(label, xPx + BESIDE_PX, (DATES_PX + AXIS_PX) / 2)
  }
  context.fillStyle = look.text
  const xOf = ({ ns }: TickDate): number => Math.max(0, placeOf(view, ns) * widthPx)
  const widthOf = (text: string): number => context.measureText(text).width + APART_PX
  for (const { xPx, text } of placedDates(axis.dates, { xOf, widthOf, widthPx }))
    context.fillText(text, Math.round(xPx) + BESIDE_PX, DATES_PX / 2 + 1)
}

interface Room {
  readonly xOf: (date: TickDate) => number
  readonly widthOf: (text: string) => number
  readonly widthPx: number
}

/** Those that fit before the next one begins; each with its zone, unless the previous one has the same. */
export function placedDates(
  dates: readonly TickDate[],
  { xOf, widthOf, widthPx }: Room,
): readonly { readonly xPx: number; readonly text: string }[] {
  const placed: { xPx: number; text: string }[] = []
  let zone = ''
  for (const [index, date] of dates.entries()) {
    const text = date.zone === zone ? date.text : `${date.text} ${date.zone}`.trim()
    const next = dates[index + 1]
    if (xOf(date) + widthOf(text) > (next === undefined ? widthPx : xOf(next))) continue
    placed.push({ xPx: xOf(date), text })
    zone = date.zone
  }
  return placed
}
