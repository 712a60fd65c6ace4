import { setTimeout as delay } from 'node:timers/promises'
import type { ClientFailure } from '../../client-failure.ts'

export interface RetryOptions {
  /** Maximum number of attempts without progress. */
  readonly max: number
  readonly signal: AbortSignal
  readonly say: (text: string) => void
}

const FIRST_MS = 500
const MOST_MS = 15_000

/** How long to wait between attempts, and when to give up. */
export class Retries {
  readonly #options: RetryOptions
  #inVain = 0

  constructor(options: RetryOptions) {
    this.#options = options
  }

  /** Starts counting failures from one again. */
  progressed(): void {
    this.#inVain = 0
  }

  /** Waits before the next attempt. Throws the failure if another attempt is pointless, or there were enough. */
  async pause(failure: ClientFailure): Promise<void> {
    const { max, signal, say } = this.#options
    if (!failure.canRetry || this.#inVain >= max) throw failure
    const backOffMs = Math.min(FIRST_MS * 2 ** this.#inVain, MOST_MS)
    const pauseMs = Math.max(backOffMs, (failure.facts.retryAfterS ?? 0) * 1_000)
    this.#inVain += 1
    say(`${failure.message}; retrying in ${pauseMs / 1_000} s (${this.#inVain} of ${max})`)
    await delay(pauseMs, undefined, { signal })
  }
}
