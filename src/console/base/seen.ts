/** Page visibility: a hidden tab makes no requests and holds no connection. */
import { useEffect, useState } from 'preact/hooks'

/** Waits until the page is visible. Resolves early if the signal aborts. */
export function untilSeen(signal: AbortSignal): Promise<void> {
  if (!document.hidden || signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const done = new AbortController()
    const end = (): void => {
      done.abort()
      resolve()
    }
    document.addEventListener('visibilitychange', () => document.hidden || end(), { signal: done.signal })
    signal.addEventListener('abort', end, { signal: done.signal })
  })
}

/** Calls a function with a signal that aborts when the given one does, or when the page is no longer visible. */
export async function whileSeen(
  signal: AbortSignal,
  action: (seen: AbortSignal) => Promise<void>,
): Promise<void> {
  const hidden = new AbortController()
  const done = new AbortController()
  document.addEventListener('visibilitychange', () => document.hidden && hidden.abort(), {
    signal: done.signal,
  })
  try {
    await action(AbortSignal.any([signal, hidden.signal]))
  } finally {
    done.abort()
  }
}

export function useSeen(): boolean {
  const [isSeen, setSeen] = useState(!document.hidden)
  useEffect(() => {
    const look = (): void => setSeen(!document.hidden)
    look()
    document.addEventListener('visibilitychange', look)
    return () => document.removeEventListener('visibilitychange', look)
  }, [])
  return isSeen
}
