/**
 * Wakes a loop that waits for several things: anything that has work for it rings. Rings before the loop waits are
 * kept, as one. Disposing it ends its timers.
 */
export class Bell implements Disposable {
  readonly #timers: NodeJS.Timeout[] = []
  #rung = Promise.withResolvers<void>()

  readonly ring = (): void => this.#rung.resolve()

  /** Resolves after a ring. */
  async wait(): Promise<void> {
    await this.#rung.promise
    this.#rung = Promise.withResolvers<void>()
  }

  /** Rings periodically; the returned function says whether it has since it was last called. */
  every(periodMs: number): () => boolean {
    let isDue = false
    const timer = setInterval(() => {
      isDue = true
      this.ring()
    }, periodMs)
    this.#timers.push(timer.unref())
    return () => {
      const wasDue = isDue
      isDue = false
      return wasDue
    }
  }

  [Symbol.dispose](): void {
    for (const timer of this.#timers) clearInterval(timer)
  }
}
