/** Server-sent events as a hook, while the page is visible; the browser reconnects automatically. */
import { useEffect, useRef } from 'preact/hooks'
import { BASE } from '../base/ask-gateway.ts'
import { useSeen } from '../base/seen.ts'

export function useEventSource(
  path: string | undefined,
  names: readonly string[],
  onEvent: (name: string, data: string) => void,
): void {
  const latest = useRef(onEvent)
  latest.current = onEvent
  const isSeen = useSeen()
  useEffect(() => {
    if (path === undefined || !isSeen) return
    const source = new EventSource(new URL(path, BASE))
    for (const name of names)
      source.addEventListener(name, (event) => latest.current(name, (event as MessageEvent<string>).data))
    return () => source.close()
  }, [path, isSeen])
}
