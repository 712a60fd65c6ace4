/** The canvas of the lanes. */
import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { nowNs } from '../base/instants.ts'
import { TEXTS } from '../texts.ts'
import { drawScene, type Scene } from './draw-lanes.ts'
import { dragHands, pressKey, type Touched, turnWheel } from './lane-gestures.ts'
import { type Look, readLook } from './lane-look.ts'

export interface LaneCanvasProps extends Touched, Omit<Scene, 'nowNs'> {
  readonly theme: string
}

export function LaneCanvas(props: LaneCanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const latest = useRef(props)
  latest.current = props
  const { widthPx, heightPx } = props
  useDrawing(canvas, latest, props)
  useWheel(canvas, latest)
  const [drag] = useState(() => dragHands(latest))
  return (
    <div
      class="lane-canvas"
      role="application"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: an application takes keys
      tabIndex={0}
      aria-label={TEXTS.timeline.canvas}
      aria-describedby="timeline-help"
      data-events={props.lanes.reduce((sum, { events }) => sum + events.length, 0)}
      onKeyDown={(event) => pressKey(event, latest.current)}
      {...drag}
    >
      <canvas ref={canvas} style={{ width: `${widthPx}px`, height: `${heightPx}px` }} />
    </div>
  )
}

type Canvas = RefObject<HTMLCanvasElement | null>
type Latest = { readonly current: LaneCanvasProps }

/** Once per frame, however often something changes. */
function useDrawing(canvas: Canvas, latest: Latest, props: LaneCanvasProps): void {
  const wanted = useRef(0)
  const lookOf = useLook()
  useEffect(() => {
    cancelAnimationFrame(wanted.current)
    wanted.current = requestAnimationFrame(() => {
      const element = canvas.current
      const context = element?.getContext('2d', { alpha: false })
      if (!element || !context) return
      const scale = window.devicePixelRatio
      const { widthPx, heightPx, theme } = latest.current
      const [width, height] = [Math.round(widthPx * scale), Math.round(heightPx * scale)]
      if (element.width !== width || element.height !== height) Object.assign(element, { width, height })
      context.setTransform(scale, 0, 0, scale, 0, 0)
      // In a wide window the font is larger.
      const look = lookOf(element, `${theme} ${widthPx}`)
      drawScene(context, { ...latest.current, nowNs: nowNs() }, look)
    })
  }, [props])
}

/** Read again when the key changes, because it makes the browser compute styles. */
function useLook(): (element: Element, key: string) => Look {
  const kept = useRef<{ readonly key: string; readonly look: Look } | undefined>(undefined)
  return (element, key) => {
    if (kept.current?.key !== key) kept.current = { key, look: readLook(element) }
    return kept.current.look
  }
}

/** Not as an attribute: only a non-passive listener can prevent the page from scrolling. */
function useWheel(canvas: Canvas, latest: Latest): void {
  useEffect(() => {
    const element = canvas.current
    if (element === null) return
    const onWheel = (event: WheelEvent): void => turnWheel(event, latest.current)
    element.addEventListener('wheel', onWheel, { passive: false })
    return () => element.removeEventListener('wheel', onWheel)
  }, [])
}
