/** Server-sent events as a hook; the browser connects again by itself. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { BASE } from '../base/ask-gateway.ts'

export type Connection = 'connecting' | 'open' | 'broken'

export function useEventSource(
  path: string | undefined,
  names: readonly string[],
  onEvent: (name: string, data: string) => void,
): Connection {
  const [connection, setConnection] = useState<Connection>('connecting')
  const latest = useRef(onEvent)
  latest.current = onEvent
  useEffect(() => {
    if (path === undefined) return
    const source = new EventSource(new URL(path, BASE))
    source.onopen = () => setConnection('open')
    source.onerror = () => setConnection(source.readyState === EventSource.CLOSED ? 'broken' : 'connecting')
    for (const name of names)
      source.addEventListener(name, (event) => latest.current(name, (event as MessageEvent<string>).data))
    return () => source.close()
  }, [path])
  return connection
}
