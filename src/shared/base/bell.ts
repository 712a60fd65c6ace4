/**
 * Wakes a loop that waits for several things: whoever has something for it rings. Rings before the
 * loop waits are kept, as one. Its timers end on dispose.
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

  /** Rings again and again; the function says whether it has since it was last asked. */
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
