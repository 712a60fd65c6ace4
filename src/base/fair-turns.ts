/**
 * At most so many holders of a turn at a time; who must wait is served caller by caller, so that one who
 * asks for a hundred turns stands in nobody's way for longer than one of them takes.
 */
export interface FairTurnsOptions {
  /** Turns that may be held at the same time. */
  readonly atOnce: number
  /** How many may wait, of all callers together. */
  readonly waitingMax: number
  /** How many of one caller may wait. */
  readonly waitingPerCallerMax: number
}

export class FairTurns {
  readonly #options: FairTurnsOptions
  /** By caller, in the order of their turns: whoever has had one goes to the end. */
  readonly #queues = new Map<string, Set<() => void>>()
  #held = 0
  #waiting = 0

  constructor(options: FairTurnsOptions) {
    this.#options = options
  }

  get waiting(): number {
    return this.#waiting
  }

  /**
   * A turn until dispose; the promise rejects with the signal's reason when it aborts before. Undefined
   * when there is no room to wait.
   */
  take(caller: string, signal: AbortSignal): Promise<Disposable> | undefined {
    if (signal.aborted) return Promise.reject(signal.reason)
    const { atOnce, waitingMax, waitingPerCallerMax } = this.#options
    if (this.#held < atOnce) return Promise.resolve(this.#turn())
    const queue = this.#queues.get(caller) ?? new Set()
    if (this.#waiting >= waitingMax || queue.size >= waitingPerCallerMax) return undefined
    return this.#wait(caller, queue, signal)
  }

  #wait(caller: string, queue: Set<() => void>, signal: AbortSignal): Promise<Disposable> {
    this.#queues.set(caller, queue)
    this.#waiting += 1
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#forget(caller, queue, enter)
        reject(signal.reason)
      }
      const enter = (): void => {
        signal.removeEventListener('abort', leave)
        this.#forget(caller, queue, enter)
        resolve(this.#turn())
      }
      signal.addEventListener('abort', leave, { once: true })
      queue.add(enter)
    })
  }

  #forget(caller: string, queue: Set<() => void>, enter: () => void): void {
    queue.delete(enter)
    this.#waiting -= 1
    if (queue.size === 0) this.#queues.delete(caller)
  }

  #turn(): Disposable {
    this.#held += 1
    let isHeld = true
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return
        isHeld = false
        this.#held -= 1
        this.#next()
      },
    }
  }

  #next(): void {
    const [first] = this.#queues
    if (first === undefined) return
    const [caller, queue] = first
    const [enter] = queue
    this.#queues.delete(caller)
    if (queue.size > 1) this.#queues.set(caller, queue)
    enter?.()
  }
}
