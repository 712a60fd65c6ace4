/** Long lists: only the visible rows are in the DOM. */
import type { RefObject } from 'preact'
import { useEffect, useState } from 'preact/hooks'

/** Rows rendered beyond the visible ones, for quick scrolling and the Tab key. */
const SPARE_ROWS = 6

export interface SeenRows {
  readonly first: number
  readonly last: number
  readonly rowPx: number
  readonly scrolledPx: number
  readonly heightPx: number
  readonly widthPx: number
}

/** `rowPxOf` returns the height of a row in a scroller of a given height. */
export function useSeenRows(
  scroller: RefObject<HTMLElement | null>,
  rowPxOf: (heightPx: number) => number,
  count: number,
): SeenRows {
  const [seen, setSeen] = useState({ scrolledPx: 0, heightPx: 0, widthPx: 0 })
  useEffect(() => {
    const element = scroller.current
    if (element === null) return
    const look = (): void =>
      setSeen({ scrolledPx: element.scrollTop, heightPx: element.clientHeight, widthPx: element.clientWidth })
    look()
    const observer = new ResizeObserver(look)
    observer.observe(element)
    element.addEventListener('scroll', look, { passive: true })
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', look)
    }
  }, [scroller.current === null, count === 0])
  const rowPx = rowPxOf(seen.heightPx)
  const first = Math.max(0, Math.floor(seen.scrolledPx / rowPx) - SPARE_ROWS)
  const last = Math.min(count, Math.ceil((seen.scrolledPx + seen.heightPx) / rowPx) + SPARE_ROWS)
  return { first, last, rowPx, ...seen }
}
