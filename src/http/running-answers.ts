/** The answers of a server that are under way, so that its end can wait for them, and for nothing else. */
import type { ServerResponse } from 'node:http'

export class RunningAnswers {
  readonly #running = new Set<ServerResponse>()
  #isDraining = false
  #onIdle: (() => void) | undefined

  /** Follows the answer to its end. */
  add(res: ServerResponse): void {
    if (this.#isDraining) res.shouldKeepAlive = false
    this.#running.add(res)
    res.once('close', () => {
      this.#running.delete(res)
      if (this.#running.size === 0) this.#onIdle?.()
    })
  }

  /** From now on a connection ends with its answer, and its client asks elsewhere. What has a head already cannot tell. */
  drain(): void {
    this.#isDraining = true
    for (const res of this.#running) if (!res.headersSent) res.shouldKeepAlive = false
  }

  /** Resolves when none is under way. */
  async idle(): Promise<void> {
    if (this.#running.size === 0) return
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve
    })
  }
}
