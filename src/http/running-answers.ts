/** The answers of a server that are under way, so that its end can wait for them, and for nothing else. */
import type { ServerResponse } from 'node:http'

export class RunningAnswers {
  /**
   * Each in a place of its own, undefined when it is free. A Set makes itself anew after so many changes, and each of the
   * old ones keeps what it held, and the next one, from the collector of young objects: all answers would grow old.
   */
  readonly #places: (ServerResponse | undefined)[] = []
  readonly #freePlaces: number[] = []
  #isDraining = false
  #onIdle: (() => void) | undefined

  /** Follows the answer to its end. */
  add(res: ServerResponse): void {
    if (this.#isDraining) res.shouldKeepAlive = false
    const place = this.#freePlaces.pop() ?? this.#places.length
    this.#places[place] = res
    res.once('close', () => {
      this.#places[place] = undefined
      this.#freePlaces.push(place)
      if (this.isIdle) this.#onIdle?.()
    })
  }

  /** From now on a connection ends with its answer, and its client asks elsewhere. What has a head already cannot tell. */
  drain(): void {
    this.#isDraining = true
    for (const res of this.#places) if (res?.headersSent === false) res.shouldKeepAlive = false
  }

  /** Resolves when none is under way. */
  async idle(): Promise<void> {
    if (this.isIdle) return
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve
    })
  }

  /** Whether the last byte of each answer has left Node, or its client has gone. */
  get isIdle(): boolean {
    return this.#freePlaces.length === this.#places.length
  }
}
