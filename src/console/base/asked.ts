/** Answers as component state: requested once, or periodically while the page is visible. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { untilSeen } from './seen.ts'

export interface Asked<Value> {
  readonly value: Value | undefined
  /** Failure of the last request; the previous value stays. */
  readonly failure: unknown
  readonly isAsking: boolean
  readonly again: () => void
}

export interface AskOptions {
  /** Triggers a new request when it changes; undefined: no request. */
  readonly key: string | undefined
  /** 0: once. */
  readonly everyMs?: number
  /** Delay before the request, so that typing and zooming do not cause one for each step. */
  readonly delayMs?: number
}

export function useAsked<Value>(
  ask: (signal: AbortSignal) => Promise<Value>,
  { key, everyMs = 0, delayMs = 0 }: AskOptions,
): Asked<Value> {
  const [state, setState] = useState<Omit<Asked<Value>, 'again'>>(EMPTY)
  const [round, setRound] = useState(0)
  const latest = useRef(ask)
  latest.current = ask
  useEffect(() => {
    if (key === undefined) return setState(EMPTY)
    const leaving = new AbortController()
    const { signal } = leaving
    void askAgain(
      () => latest.current(signal),
      { signal, everyMs, delayMs: round === 0 ? delayMs : 0 },
      (change) => setState((before) => ({ ...before, ...change })),
    )
    return () => leaving.abort()
  }, [key, everyMs, delayMs, round])
  return { ...state, again: () => setRound((before) => before + 1) }
}

/** Whether it has been so for long enough to be noticed: showing a brief wait would only flicker. */
export function useLasting(isSo: boolean): boolean {
  const [isLasting, setLasting] = useState(false)
  useEffect(() => {
    setLasting(false)
    if (!isSo) return
    const timer = setTimeout(() => setLasting(true), LASTING_MS)
    return () => clearTimeout(timer)
  }, [isSo])
  return isSo && isLasting
}

const LASTING_MS = 400

const EMPTY = { value: undefined, failure: undefined, isAsking: false }

interface Rounds {
  readonly signal: AbortSignal
  readonly everyMs: number
  readonly delayMs: number
}

async function askAgain<Value>(
  ask: () => Promise<Value>,
  { signal, everyMs, delayMs }: Rounds,
  show: (change: Partial<Asked<Value>>) => void,
): Promise<void> {
  show({ isAsking: true })
  await pause(delayMs, signal)
  for (;;) {
    await untilSeen(signal)
    if (signal.aborted) return
    try {
      const value = await ask()
      if (!signal.aborted) show({ value, failure: undefined, isAsking: false })
    } catch (failure) {
      if (!signal.aborted) show({ failure, isAsking: false })
    }
    if (everyMs === 0) return
    await pause(everyMs, signal)
  }
}

/** Resolves early if the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms === 0 || signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** One action at a time, with its outcome. */
export function useAction(): {
  readonly isBusy: boolean
  readonly failure: unknown
  readonly run: (action: () => Promise<void>) => void
} {
  const [state, setState] = useState<{ isBusy: boolean; failure: unknown }>({
    isBusy: false,
    failure: undefined,
  })
  const run = (action: () => Promise<void>): void => {
    setState({ isBusy: true, failure: undefined })
    action().then(
      () => setState({ isBusy: false, failure: undefined }),
      (error: unknown) => setState({ isBusy: false, failure: error }),
    )
  }
  return { ...state, run }
}
