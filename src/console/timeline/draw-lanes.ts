/**
 * Draws the lanes: for each device the captured traffic as an area, its captures as bars, gaps and losses as marks.
 * One canvas draws the visible lanes of a thousand; a chart library would need one canvas per lane, and numbers for
 * its axis, which cannot hold nanoseconds.
 */
import type { Zone } from '../base/instants.ts'
import { TEXTS } from '../texts.ts'
import { AXIS_PX, drawAxis, drawGrid, tickCount } from './draw-axis.ts'
import type { LaneActivity, Stretch } from './lane-activity.ts'
import type { Look } from './lane-look.ts'
import { gapParts, highestBytes, type Span, shownBuckets } from './lane-values.ts'
import type { Sighting } from './sightings.ts'
import { timeAxis } from './time-axis.ts'
import { placeOf, type TimeView } from './time-view.ts'

const LANE_MIN_PX = 34
const LANE_MAX_PX = 200
const BAR_PX = 3
const GAP_PX = 1
const MARK_PX = 5
const SIGHTING_PX = 4
/** A shorter mark cannot be hit. */
const SIGHTING_MIN_PX = 3
const HATCH_PX = 10
/** Opacity of the background colour over what is not selected. */
const UNSELECTED = 0.5

export interface Lane {
  readonly device: string
  readonly captures: readonly (Span & { readonly isActive: boolean })[]
  readonly events: readonly { readonly atNs: bigint; readonly kind: string }[]
  /** When the addresses that were searched for were seen. */
  readonly sightings: readonly Sighting[]
}

/** Position of the pointer, or of the keyboard cursor. */
export interface Cursor {
  readonly ns: bigint
  /** Index of the lane; undefined: on the axis, or below the lanes. */
  readonly lane: number | undefined
  readonly isByKeys: boolean
}

export interface Scene {
  readonly view: TimeView
  readonly zone: Zone
  readonly lanes: readonly Lane[]
  readonly activity: ReadonlyMap<string, LaneActivity>
  /** The devices that did not answer: an empty lane would mean that nothing was captured. */
  readonly silent: ReadonlySet<string>
  readonly selection: TimeView | undefined
  readonly cursor: Cursor | undefined
  readonly nowNs: bigint
  readonly widthPx: number
  readonly heightPx: number
  readonly lanePx: number
  /** Height of the lanes that are scrolled out of view. */
  readonly scrolledPx: number
}

/** A few lanes share the available height. */
export function lanePxOf(heightPx: number, count: number): number {
  const shared = Math.floor((heightPx - AXIS_PX) / Math.max(1, count))
  return Math.min(LANE_MAX_PX, Math.max(LANE_MIN_PX, shared))
}

/** The visible lanes: index of the first, and of the one after the last. */
export function visibleLanes(
  { scrolledPx, heightPx, lanePx }: Pick<Scene, 'scrolledPx' | 'heightPx' | 'lanePx'>,
  count: number,
): readonly [number, number] {
  const first = Math.max(0, Math.floor(scrolledPx / lanePx))
  return [first, Math.min(count, Math.ceil((scrolledPx + heightPx - AXIS_PX) / lanePx))]
}

export function drawScene(context: CanvasRenderingContext2D, scene: Scene, look: Look): void {
  const { view, zone, widthPx, heightPx, lanes, lanePx, scrolledPx } = scene
  context.fillStyle = look.ground
  context.fillRect(0, 0, widthPx, heightPx)
  const axis = timeAxis(view, zone, tickCount(widthPx))
  const bottomPx = Math.min(heightPx, AXIS_PX + lanes.length * lanePx - scrolledPx)
  context.save()
  context.beginPath()
  context.rect(0, AXIS_PX, widthPx, Math.max(0, bottomPx - AXIS_PX))
  context.clip()
  drawGrid(context, axis, { view, zone, widthPx, look, bottomPx })
  const shown = laneDrawings(scene, look)
  for (const lane of shown) drawLane(context, scene, lane)
  drawNow(context, scene, look)
  drawSelection(context, scene, look)
  // Applies to the whole lane, whatever is selected.
  for (const drawing of shown) if (scene.silent.has(drawing.lane.device)) drawSilence(context, scene, drawing)
  drawCursor(context, scene, look)
  context.restore()
  drawAxis(context, axis, { view, zone, widthPx, look })
}

interface LaneDrawing {
  readonly lane: Lane
  readonly topPx: number
  readonly look: Look
}

function laneDrawings(scene: Scene, look: Look): readonly LaneDrawing[] {
  const { lanes, lanePx, scrolledPx } = scene
  const [first, last] = visibleLanes(scene, lanes.length)
  return lanes
    .slice(first, last)
    .map((lane, index) => ({ lane, topPx: AXIS_PX + (first + index) * lanePx - scrolledPx, look }))
}

function drawLane(context: CanvasRenderingContext2D, scene: Scene, { lane, topPx, look }: LaneDrawing): void {
  const { widthPx, view, lanePx } = scene
  const bottomPx = topPx + lanePx
  context.fillStyle = look.line
  context.fillRect(0, bottomPx - 1, widthPx, 1)
  const activity = scene.activity.get(lane.device)
  if (activity !== undefined) {
    context.fillStyle = look.raised
    for (const stretch of activity.trimmed)
      fillStretch(context, scene, { stretch: spanOf(stretch), topPx: topPx + 1, heightPx: lanePx - 2 })
    context.fillStyle = look.accent
    drawArea(context, scene, { activity, bottomPx: bottomPx - BAR_PX - 2 })
  }
  for (const capture of lane.captures) {
    context.fillStyle = capture.isActive ? look.good : look.quiet
    fillStretch(context, scene, { stretch: capture, topPx: bottomPx - BAR_PX - 1, heightPx: BAR_PX })
  }
  for (const gap of activity?.gaps ?? []) drawGap(context, scene, { gap, lane, bottomPx, look })
  context.fillStyle = look.bad
  for (const stretch of activity?.dropped ?? [])
    fillStretch(context, scene, { stretch: spanOf(stretch), topPx: topPx + 1, heightPx: MARK_PX - 1 })
  context.fillStyle = look.text
  for (const stretch of lane.sightings) {
    const place = { stretch, topPx: bottomPx - BAR_PX - SIGHTING_PX - 3, heightPx: SIGHTING_PX }
    fillStretch(context, scene, { ...place, leastPx: SIGHTING_MIN_PX })
  }
  context.fillStyle = look.warning
  for (const { atNs } of lane.events) drawEvent(context, placeOf(view, atNs) * widthPx, topPx)
}

/** Hatched, with the reason in words. */
function drawSilence(
  context: CanvasRenderingContext2D,
  { widthPx, lanePx }: Scene,
  { topPx, look }: LaneDrawing,
): void {
  context.save()
  context.beginPath()
  context.rect(0, topPx, widthPx, lanePx - 1)
  context.clip()
  context.strokeStyle = look.line
  context.beginPath()
  for (let xPx = -lanePx; xPx < widthPx; xPx += HATCH_PX) {
    context.moveTo(xPx, topPx + lanePx)
    context.lineTo(xPx + lanePx, topPx)
  }
  context.stroke()
  context.fillStyle = look.bad
  context.font = look.font
  context.textBaseline = 'middle'
  context.fillText(TEXTS.timeline.silent, 8, topPx + lanePx / 2)
  context.restore()
}

/** Square root of the rate: a lane with few packets is still visible next to a burst. */
function drawArea(
  context: CanvasRenderingContext2D,
  { view, widthPx, lanePx }: Scene,
  { activity, bottomPx }: { readonly activity: LaneActivity; readonly bottomPx: number },
): void {
  const { bytes, bucketNs } = activity
  const highest = highestBytes(activity, view)
  if (highest === 0) return
  const leftPx = placeOf(view, activity.view.fromNs) * widthPx
  const bucketPx = (Number(bucketNs) / Number(view.toNs - view.fromNs)) * widthPx
  const heightPx = lanePx - BAR_PX - MARK_PX - 4
  const [first, last] = shownBuckets(activity, view)
  // A single path: filling each bar separately takes longer than drawing everything else.
  context.beginPath()
  context.moveTo(leftPx + first * bucketPx, bottomPx)
  for (let index = first; index < last; index += 1) {
    const value = bytes[index] ?? 0
    const barPx = value === 0 ? 0 : Math.max(1.5, Math.sqrt(value / highest) * heightPx)
    const xPx = leftPx + index * bucketPx
    context.lineTo(xPx, bottomPx - barPx)
    // A bucket narrower than a pixel would fade away.
    context.lineTo(xPx + (value === 0 ? bucketPx : Math.max(1, bucketPx)), bottomPx - barPx)
  }
  context.lineTo(leftPx + last * bucketPx, bottomPx)
  context.fill()
}

function spanOf(stretch: Stretch): Span {
  return { fromNs: BigInt(stretch.fromNs), toNs: BigInt(stretch.toNs) }
}

interface StretchPlace {
  readonly stretch: Span
  readonly topPx: number
  readonly heightPx: number
  /** Width of a stretch that would be narrower. */
  readonly leastPx?: number
}

function fillStretch(
  context: CanvasRenderingContext2D,
  { view, widthPx }: Scene,
  { stretch, topPx, heightPx, leastPx = 1.5 }: StretchPlace,
): void {
  const left = Math.max(0, placeOf(view, stretch.fromNs) * widthPx)
  const right = Math.min(widthPx, placeOf(view, stretch.toNs) * widthPx)
  if (right >= 0 && left <= widthPx) context.fillRect(left, topPx, Math.max(leastPx, right - left), heightPx)
}

interface GapDrawing {
  readonly gap: Stretch
  readonly lane: Lane
  readonly bottomPx: number
  readonly look: Look
}

/** A warning if a capture was running but has nothing; subdued if there was none. */
function drawGap(
  context: CanvasRenderingContext2D,
  scene: Scene,
  { gap, lane, bottomPx, look }: GapDrawing,
): void {
  for (const { isInside, ...stretch } of gapParts(gap, lane.captures)) {
    if (isInside) {
      context.fillStyle = look.ground
      fillStretch(context, scene, { stretch, topPx: bottomPx - BAR_PX - 1, heightPx: BAR_PX })
    }
    context.fillStyle = isInside ? look.warning : look.line
    fillStretch(context, scene, { stretch, topPx: bottomPx - GAP_PX - 2, heightPx: GAP_PX })
  }
}

function drawEvent(context: CanvasRenderingContext2D, xPx: number, topPx: number): void {
  context.beginPath()
  context.moveTo(xPx - 4, topPx + 1)
  context.lineTo(xPx + 4, topPx + 1)
  context.lineTo(xPx, topPx + 1 + MARK_PX)
  context.fill()
}

/** A line at the present time. */
function drawNow(
  context: CanvasRenderingContext2D,
  { view, nowNs, widthPx, heightPx }: Scene,
  look: Look,
): void {
  const xPx = placeOf(view, nowNs) * widthPx
  if (xPx < 0 || xPx > widthPx) return
  context.fillStyle = look.good
  context.fillRect(xPx, AXIS_PX, 1, heightPx)
}

/** Dims what is not selected: a colour over the area of a lane would not be visible. */
function drawSelection(
  context: CanvasRenderingContext2D,
  { view, selection, widthPx, heightPx }: Scene,
  look: Look,
): void {
  if (selection === undefined || selection.toNs < view.fromNs || selection.fromNs > view.toNs) return
  const left = Math.max(-1, Math.round(placeOf(view, selection.fromNs) * widthPx))
  const right = Math.min(widthPx, Math.round(placeOf(view, selection.toNs) * widthPx))
  context.fillStyle = look.selection
  context.fillRect(left, AXIS_PX, right - left, heightPx)
  if (right > left) {
    context.globalAlpha = UNSELECTED
    context.fillStyle = look.ground
    context.fillRect(0, AXIS_PX, left, heightPx)
    context.fillRect(right, AXIS_PX, widthPx - right, heightPx)
    context.globalAlpha = 1
  }
  context.fillStyle = look.accent
  for (const xPx of [left, right]) context.fillRect(xPx, AXIS_PX, 1, heightPx)
}

/** Across all lanes, and more visible in its own. */
function drawCursor(
  context: CanvasRenderingContext2D,
  { view, cursor, widthPx, heightPx, lanePx, scrolledPx }: Scene,
  look: Look,
): void {
  if (cursor === undefined) return
  const xPx = Math.round(placeOf(view, cursor.ns) * widthPx)
  context.fillStyle = look.quiet
  context.fillRect(xPx, AXIS_PX, 1, heightPx)
  context.fillStyle = look.text
  if (cursor.lane !== undefined)
    context.fillRect(xPx, AXIS_PX + cursor.lane * lanePx - scrolledPx, 2, lanePx - 1)
}
