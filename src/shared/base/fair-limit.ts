import { addAbortListener } from 'node:events'

export interface FairLimitOptions {
  /** How many may have a place at a time. */
  readonly places: number
  /** How many may wait, of all users together; default: any number. */
  readonly waitingMax?: number
  /** How many of one user may wait; default: any number. */
  readonly waitingPerUserMax?: number
}

/** Called when its place has come. */
type Enter = () => void

/**
 * At most so many places in use at a time; others wait. A place that falls free goes to a user who has the
 * fewest of them, and among these to the one whose turn is the longest ago: who asks for many takes no
 * turn from others. Those of one user, or where no users are named, are served in the order of arrival.
 * A holder gives its place back by dispose (twice is harmless).
 */
export class FairLimit {
  readonly #options: Required<FairLimitOptions>
  /** How many each user has; users without any are left out. */
  readonly #held = new Map<string, number>()
  /** Those who wait, by user, in the order of turns: a Set forgets a leaver at once. */
  readonly #queues = new Map<string, Set<Enter>>()
  #used = 0
  #waiting = 0

  constructor(options: FairLimitOptions) {
    this.#options = { waitingMax: Infinity, waitingPerUserMax: Infinity, ...options }
  }

  get used(): number {
    return this.#used
  }

  get waiting(): number {
    return this.#waiting
  }

  /** Whether somebody else than this user waits. */
  isWantedByOthers(user: string): boolean {
    return this.#waiting > (this.#queues.get(user)?.size ?? 0)
  }

  /** A place at once, or undefined. */
  tryAcquire(user = ''): Disposable | undefined {
    // A free place is handed to a waiter when it falls free, so nobody waits while one is free.
    if (this.#used >= this.#options.places) return undefined
    this.#used += 1
    return this.#place(user)
  }

  /** Whether acquire() may be called: there is a place, or room to wait for one. */
  hasRoomFor(user: string): boolean {
    const { places, waitingMax, waitingPerUserMax } = this.#options
    if (this.#used < places) return true
    return this.#waiting < waitingMax && (this.#queues.get(user)?.size ?? 0) < waitingPerUserMax
  }

  /** Waits for a place. Rejects with the signal's reason; the place in the queue is then given up. */
  acquire(signal: AbortSignal, user = ''): Promise<Disposable> {
    if (signal.aborted) return Promise.reject(signal.reason)
    const free = this.tryAcquire(user)
    if (free) return Promise.resolve(free)
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        leaving[Symbol.dispose]()
        this.#forget(user, enter)
        resolve(this.#place(user))
      }
      const leaving = addAbortListener(signal, () => {
        this.#forget(user, enter)
        reject(signal.reason)
      })
      this.#remember(user, enter)
    })
  }

  #remember(user: string, enter: Enter): void {
    const queue = this.#queues.get(user) ?? new Set()
    this.#queues.set(user, queue.add(enter))
    this.#waiting += 1
  }

  #forget(user: string, enter: Enter): void {
    const queue = this.#queues.get(user)
    if (queue === undefined) return
    queue.delete(enter)
    if (queue.size === 0) this.#queues.delete(user)
    this.#waiting -= 1
  }

  #place(user: string): Disposable {
    this.#held.set(user, this.#heldBy(user) + 1)
    let isHeld = true
    return {
      [Symbol.dispose]: () => {
        if (isHeld) this.#free(user)
        isHeld = false
      },
    }
  }

  #free(user: string): void {
    const left = this.#heldBy(user) - 1
    if (left === 0) this.#held.delete(user)
    else this.#held.set(user, left)
    const next = this.#nextUser()
    if (next === undefined) this.#used -= 1
    else this.#serve(next)
  }

  #nextUser(): string | undefined {
    let next: string | undefined
    for (const user of this.#queues.keys()) {
      if (next === undefined || this.#heldBy(user) < this.#heldBy(next)) next = user
    }
    return next
  }

  /** Whoever has had a turn goes behind all others. */
  #serve(user: string): void {
    const queue = this.#queues.get(user)
    const [enter] = queue ?? []
    if (queue === undefined || enter === undefined) return
    this.#queues.delete(user)
    this.#queues.set(user, queue)
    enter()
  }

  #heldBy(user: string): number {
    return this.#held.get(user) ?? 0
  }
}
