/** Answers as state of a component: asked once, or again and again while the page is looked at. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { untilSeen } from './seen.ts'

export interface Asked<Value> {
  readonly value: Value | undefined
  /** Of the last time; the value before it stays. */
  readonly failure: unknown
  readonly isAsking: boolean
  readonly again: () => void
}

export interface AskOptions {
  /** Asks anew when it changes; undefined asks nothing. */
  readonly key: string | undefined
  /** 0: once. */
  readonly everyMs?: number
  /** Waits for so long before it asks: what is typed or zoomed is not asked for letter by letter. */
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

/** Whether it has been so for longer than somebody overlooks: what comes at once needs no word, which would flicker. */
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

/** Ends early, without an error, when the signal aborts. */
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

/** One action at a time, with what became of it. */
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
