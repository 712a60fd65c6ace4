import { clientGone } from '../../../shared/base/error.ts'
import { orAborted } from '../../../shared/base/or-aborted.ts'

interface Asked<Answer> {
  /** Infinity until it begins. */
  startedMs: number
  waiters: number
  isRunning: boolean
  readonly left: AbortController
  readonly answer: Promise<Answer>
}

export interface SharingOptions {
  /** Maximum age of an acceptable answer. */
  readonly maxAgeMs: number
  /** Ends the wait of this caller only. */
  readonly signal: AbortSignal
}

/**
 * Questions to one device, asked once for all callers that want the answer at the same time: a thousand downloads that
 * begin together cost one question. For each question only one runs at a time; callers that need a newer answer share
 * the next one, so the gateway never has more than two in progress, whatever the number of callers. A question is
 * cancelled when no caller is waiting for it any more.
 */
export class SharedAnswers<Answer> {
  readonly #keptMs: number
  readonly #asked = new Map<string, Asked<Answer>>()
  /** Questions that begin when the running one of the same key has ended. */
  readonly #next = new Map<string, Asked<Answer>>()

  /** An answer is kept for `keptMs`, which must not be less than any maximum age that is requested. */
  constructor(keptMs: number) {
    this.#keptMs = keptMs
  }

  /**
   * The answer of `ask`, which must be the same question for the same key; its signal aborts when no caller is waiting
   * any more. Fails like `ask`, or with the signal's reason; failures are not cached.
   */
  async get(
    key: string,
    { maxAgeMs, signal }: SharingOptions,
    ask: (signal: AbortSignal) => Promise<Answer>,
  ): Promise<Answer> {
    signal.throwIfAborted()
    const asked = this.#askedSince(key, performance.now() - maxAgeMs, ask)
    asked.waiters += 1
    try {
      return await orAborted(asked.answer, signal)
    } finally {
      asked.waiters -= 1
      if (asked.waiters === 0) this.#leave(key, asked)
    }
  }

  /** Discards all answers, because the device has changed. */
  forget(): void {
    this.#asked.clear()
  }

  #askedSince(key: string, sinceMs: number, ask: (signal: AbortSignal) => Promise<Answer>): Asked<Answer> {
    const last = this.#asked.get(key)
    if (last !== undefined && last.startedMs >= sinceMs) return last
    const begin = (asked: Asked<Answer>) => {
      this.#asked.set(key, asked)
      asked.startedMs = performance.now()
      asked.isRunning = true
      return ask(asked.left.signal)
    }
    if (last?.isRunning !== true)
      return this.#watch(
        key,
        pending((asked) => begin(asked)),
      )
    const next = this.#next.get(key)
    if (next !== undefined) return next
    const following = pending<Answer>(async (asked) => {
      await last.answer.catch(() => undefined)
      if (this.#next.get(key) === asked) this.#next.delete(key)
      asked.left.signal.throwIfAborted()
      return await begin(asked)
    })
    this.#next.set(key, following)
    return this.#watch(key, following)
  }

  #watch(key: string, asked: Asked<Answer>): Asked<Answer> {
    const forget = () => {
      if (this.#asked.get(key) === asked) this.#asked.delete(key)
    }
    const onAnswer = () => {
      asked.isRunning = false
      if (this.#keptMs === 0) forget()
      else setTimeout(forget, this.#keptMs).unref()
    }
    const onFailure = () => {
      asked.isRunning = false
      forget()
    }
    asked.answer.then(onAnswer, onFailure)
    return asked
  }

  #leave(key: string, asked: Asked<Answer>): void {
    if (this.#next.get(key) === asked) this.#next.delete(key)
    if (asked.isRunning && this.#asked.get(key) === asked) this.#asked.delete(key)
    asked.left.abort(clientGone())
  }
}

function pending<Answer>(ask: (asked: Asked<Answer>) => Promise<Answer>): Asked<Answer> {
  const { promise: answer, resolve } = Promise.withResolvers<Answer>()
  const asked = { startedMs: Infinity, waiters: 0, isRunning: false, left: new AbortController(), answer }
  resolve(ask(asked))
  return asked
}
