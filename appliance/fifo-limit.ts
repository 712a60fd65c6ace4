/**
 * At most `places` holders at a time; the others wait in the order of their arrival. A holder
 * gives its place back by dispose (twice is harmless).
 */
export class FifoLimit {
  readonly #places: number
  #used = 0
  /** In order of arrival: a Set keeps it and forgets a leaver at once. */
  readonly #waiting = new Set<() => void>()

  constructor(places: number) {
    this.#places = places
  }

  get used(): number {
    return this.#used
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** A place at once, or undefined. */
  tryAcquire(): Disposable | undefined {
    // A free place is handed to a waiter when it falls free, so nobody waits while one is free.
    if (this.#used >= this.#places) return undefined
    this.#used += 1
    return this.#place()
  }

  /** Waits for a place. Rejects with the signal's reason; the place in the queue is then given up. */
  acquire(signal: AbortSignal): Promise<Disposable> {
    if (signal.aborted) return Promise.reject(signal.reason)
    const free = this.tryAcquire()
    if (free) return Promise.resolve(free)
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.delete(enter)
        reject(signal.reason)
      }
      const enter = (): void => {
        signal.removeEventListener('abort', leave)
        resolve(this.#place())
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#waiting.add(enter)
    })
  }

  #place(): Disposable {
    let held = true
    return {
      [Symbol.dispose]: () => {
        if (held) this.#free()
        held = false
      },
    }
  }

  #free(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#used -= 1
      return
    }
    this.#waiting.delete(next)
    next()
  }
}
