/** Of a long list only the rows that can be seen are in the page. */
import type { RefObject } from 'preact'
import { useEffect, useState } from 'preact/hooks'

/** Rows beside those that can be seen: a quick scroll and the Tab key find them there. */
const SPARE_ROWS = 6

export interface SeenRows {
  readonly first: number
  readonly last: number
  readonly rowPx: number
  readonly scrolledPx: number
  readonly heightPx: number
  readonly widthPx: number
}

/** `rowPxOf` tells how high a row is in a scroller that is so high. */
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
