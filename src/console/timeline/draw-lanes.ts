/**
 * Draws the lanes: for each device what it captured as an area, its captures as bars, holes and losses as marks. One
 * canvas holds those of a thousand that can be seen; a library for charts would take one for each lane, and numbers for
 * its axis, which do not hold nanoseconds.
 */

import type { Zone } from '../base/instants.ts'
import { TEXTS } from '../texts.ts'
import type { LaneActivity, Stretch } from './lane-activity.ts'
import { placeOf, type TimeView, ticksOf } from './time-view.ts'

const LANE_MIN_PX = 34
const LANE_MAX_PX = 96
export const AXIS_PX = 24
const BAR_PX = 3
const GAP_PX = 1
const MARK_PX = 5
const TICK_PX = 110
const HATCH_PX = 10

export interface Lane {
  readonly device: string
  readonly captures: readonly { readonly fromNs: bigint; readonly toNs: bigint; readonly isActive: boolean }[]
  readonly events: readonly { readonly atNs: bigint; readonly kind: string }[]
}

export interface Scene {
  readonly view: TimeView
  readonly zone: Zone
  readonly lanes: readonly Lane[]
  readonly activity: ReadonlyMap<string, LaneActivity>
  /** The devices that did not answer: an empty lane would say that nothing was captured. */
  readonly silent: ReadonlySet<string>
  readonly selection: TimeView | undefined
  readonly cursorNs: bigint | undefined
  readonly nowNs: bigint
  readonly widthPx: number
  readonly heightPx: number
  readonly lanePx: number
  /** Of the lanes that are scrolled away. */
  readonly scrolledPx: number
}

export interface Colours {
  readonly ground: string
  readonly panel: string
  readonly raised: string
  readonly line: string
  readonly text: string
  readonly quiet: string
  readonly accent: string
  readonly good: string
  readonly warning: string
  readonly bad: string
  readonly selection: string
  readonly mono: string
}

export function readColours(element: Element): Colours {
  const style = getComputedStyle(element)
  const names = [
    'ground',
    'panel',
    'raised',
    'line',
    'text',
    'quiet',
    'accent',
    'good',
    'warning',
    'bad',
    'selection',
    'mono',
  ]
  return Object.fromEntries(
    names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
  ) as unknown as Colours
}

/** Few lanes share the room that there is. */
export function lanePxOf(heightPx: number, count: number): number {
  const shared = Math.floor((heightPx - AXIS_PX) / Math.max(1, count))
  return Math.min(LANE_MAX_PX, Math.max(LANE_MIN_PX, shared))
}

/** The lanes that can be seen, the first and the one behind the last. */
export function visibleLanes(
  { scrolledPx, heightPx, lanePx }: Pick<Scene, 'scrolledPx' | 'heightPx' | 'lanePx'>,
  count: number,
): readonly [number, number] {
  const first = Math.max(0, Math.floor(scrolledPx / lanePx))
  return [first, Math.min(count, Math.ceil((scrolledPx + heightPx - AXIS_PX) / lanePx))]
}

export function drawScene(context: CanvasRenderingContext2D, scene: Scene, colours: Colours): void {
  const { widthPx, heightPx, lanes, lanePx, scrolledPx } = scene
  context.fillStyle = colours.ground
  context.fillRect(0, 0, widthPx, heightPx)
  drawGrid(context, scene, colours)
  const [first, last] = visibleLanes(scene, lanes.length)
  for (let index = first; index < last; index += 1) {
    const lane = lanes[index]
    if (lane !== undefined)
      drawLane(context, scene, { lane, topPx: AXIS_PX + index * lanePx - scrolledPx, colours })
  }
  drawNow(context, scene, colours)
  drawSelection(context, scene, colours)
  drawAxis(context, scene, colours)
}

interface LaneDrawing {
  readonly lane: Lane
  readonly topPx: number
  readonly colours: Colours
}

function drawLane(
  context: CanvasRenderingContext2D,
  scene: Scene,
  { lane, topPx, colours }: LaneDrawing,
): void {
  const { widthPx, view, lanePx } = scene
  const bottomPx = topPx + lanePx
  context.fillStyle = colours.line
  context.fillRect(0, bottomPx - 1, widthPx, 1)
  if (scene.silent.has(lane.device)) drawSilence(context, scene, { lane, topPx, colours })
  const activity = scene.activity.get(lane.device)
  if (activity !== undefined) {
    context.fillStyle = colours.raised
    for (const stretch of activity.trimmed)
      fillStretch(context, scene, { stretch, topPx: topPx + 1, heightPx: lanePx - 2 })
    drawArea(context, scene, { activity, bottomPx: bottomPx - BAR_PX - 2, colours })
  }
  for (const capture of lane.captures) {
    context.fillStyle = capture.isActive ? colours.good : colours.quiet
    fillStretch(context, scene, { stretch: capture, topPx: bottomPx - BAR_PX - 1, heightPx: BAR_PX })
  }
  for (const stretch of activity?.gaps ?? []) drawGap(context, scene, { stretch, bottomPx, colours })
  context.fillStyle = colours.bad
  for (const stretch of activity?.dropped ?? [])
    fillStretch(context, scene, { stretch, topPx: topPx + 1, heightPx: MARK_PX - 1 })
  for (const { atNs } of lane.events) drawEvent(context, placeOf(view, atNs) * widthPx, topPx, colours)
}

/** Hatched, with the reason in words. */
function drawSilence(
  context: CanvasRenderingContext2D,
  { widthPx, lanePx }: Scene,
  { topPx, colours }: LaneDrawing,
): void {
  context.save()
  context.beginPath()
  context.rect(0, topPx, widthPx, lanePx - 1)
  context.clip()
  context.strokeStyle = colours.line
  context.beginPath()
  for (let xPx = -lanePx; xPx < widthPx; xPx += HATCH_PX) {
    context.moveTo(xPx, topPx + lanePx)
    context.lineTo(xPx + lanePx, topPx)
  }
  context.stroke()
  context.fillStyle = colours.bad
  context.font = `12px ${colours.mono}`
  context.textBaseline = 'middle'
  context.fillText(TEXTS.timeline.silent, 8, topPx + lanePx / 2)
  context.restore()
}

/** The root of the rate: a lane of few packets beside a burst is still seen. */
function drawArea(
  context: CanvasRenderingContext2D,
  { view, widthPx, lanePx }: Scene,
  {
    activity,
    bottomPx,
    colours,
  }: { readonly activity: LaneActivity; readonly bottomPx: number; readonly colours: Colours },
): void {
  const { bytes, bucketNs } = activity
  const leftPx = placeOf(view, activity.view.fromNs) * widthPx
  const bucketPx = (Number(bucketNs) / Number(view.toNs - view.fromNs)) * widthPx
  const first = Math.max(0, Math.floor(-leftPx / bucketPx) - 1)
  const last = Math.min(bytes.length, Math.ceil((widthPx - leftPx) / bucketPx) + 1)
  let highest = 0
  for (let index = first; index < last; index += 1) highest = Math.max(highest, bytes[index] ?? 0)
  if (highest === 0) return
  const heightPx = lanePx - BAR_PX - MARK_PX - 4
  context.fillStyle = colours.accent
  for (let index = first; index < last; index += 1) {
    const value = bytes[index] ?? 0
    if (value === 0) continue
    const barPx = Math.max(1.5, Math.sqrt(value / highest) * heightPx)
    // A bucket narrower than a pixel would fade away.
    context.fillRect(leftPx + index * bucketPx, bottomPx - barPx, Math.max(1, bucketPx + 0.3), barPx)
  }
}

function fillStretch(
  context: CanvasRenderingContext2D,
  { view, widthPx }: Scene,
  {
    stretch,
    topPx,
    heightPx,
  }: {
    readonly stretch: Stretch | { readonly fromNs: bigint; readonly toNs: bigint }
    readonly topPx: number
    readonly heightPx: number
  },
): void {
  const left = Math.max(0, placeOf(view, BigInt(stretch.fromNs)) * widthPx)
  const right = Math.min(widthPx, placeOf(view, BigInt(stretch.toNs)) * widthPx)
  if (right >= 0 && left <= widthPx) context.fillRect(left, topPx, Math.max(1.5, right - left), heightPx)
}

/** A capture that went on has nothing there. */
function drawGap(
  context: CanvasRenderingContext2D,
  scene: Scene,
  {
    stretch,
    bottomPx,
    colours,
  }: { readonly stretch: Stretch; readonly bottomPx: number; readonly colours: Colours },
): void {
  context.fillStyle = colours.ground
  fillStretch(context, scene, { stretch, topPx: bottomPx - BAR_PX - 1, heightPx: BAR_PX })
  context.fillStyle = colours.warning
  fillStretch(context, scene, { stretch, topPx: bottomPx - GAP_PX - 2, heightPx: GAP_PX })
}

function drawEvent(context: CanvasRenderingContext2D, xPx: number, topPx: number, colours: Colours): void {
  context.fillStyle = colours.warning
  context.beginPath()
  context.moveTo(xPx - 4, topPx + 1)
  context.lineTo(xPx + 4, topPx + 1)
  context.lineTo(xPx, topPx + 1 + MARK_PX)
  context.fill()
}

function drawGrid(
  context: CanvasRenderingContext2D,
  { view, zone, widthPx, heightPx }: Scene,
  colours: Colours,
): void {
  for (const { ns, isMajor } of ticksOf(view, zone, widthPx / TICK_PX)) {
    context.fillStyle = isMajor ? colours.line : colours.raised
    context.fillRect(Math.round(placeOf(view, ns) * widthPx), AXIS_PX, 1, heightPx)
  }
}

function drawAxis(context: CanvasRenderingContext2D, { view, zone, widthPx }: Scene, colours: Colours): void {
  context.fillStyle = colours.panel
  context.fillRect(0, 0, widthPx, AXIS_PX)
  context.fillStyle = colours.line
  context.fillRect(0, AXIS_PX - 1, widthPx, 1)
  context.font = `12px ${colours.mono}`
  context.textBaseline = 'middle'
  for (const { ns, label, isMajor } of ticksOf(view, zone, widthPx / TICK_PX)) {
    const xPx = Math.round(placeOf(view, ns) * widthPx)
    context.fillStyle = colours.line
    context.fillRect(xPx, AXIS_PX - 6, 1, 6)
    context.fillStyle = isMajor ? colours.text : colours.quiet
    context.fillText(label, xPx + 4, AXIS_PX / 2)
  }
}

/** A line where now is. */
function drawNow(
  context: CanvasRenderingContext2D,
  { view, nowNs, widthPx, heightPx }: Scene,
  colours: Colours,
): void {
  const xPx = placeOf(view, nowNs) * widthPx
  if (xPx < 0 || xPx > widthPx) return
  context.fillStyle = colours.good
  context.fillRect(xPx, AXIS_PX, 1, heightPx)
}

function drawSelection(context: CanvasRenderingContext2D, scene: Scene, colours: Colours): void {
  const { view, selection, cursorNs, widthPx, heightPx } = scene
  if (selection !== undefined) {
    const left = Math.max(-2, placeOf(view, selection.fromNs) * widthPx)
    const right = Math.min(widthPx + 2, placeOf(view, selection.toNs) * widthPx)
    context.fillStyle = colours.selection
    context.fillRect(left, AXIS_PX, Math.max(1, right - left), heightPx)
    context.fillStyle = colours.accent
    for (const xPx of [left, right]) context.fillRect(Math.round(xPx), AXIS_PX, 1, heightPx)
  }
  if (cursorNs === undefined) return
  context.fillStyle = colours.text
  context.fillRect(Math.round(placeOf(view, cursorNs) * widthPx), AXIS_PX, 1, heightPx)
}
