import { addAbortListener } from 'node:events'

export interface FairLimitOptions {
  /** Maximum number of places in use. */
  readonly places: number
  /** Maximum number of waiters over all users. Default: unlimited. */
  readonly waitingMax?: number
  /** Maximum number of waiters per user. Default: unlimited. */
  readonly waitingPerUserMax?: number
}

/** Called when it gets its place. */
type Enter = () => void

/**
 * Limits the number of places in use; others wait. A freed place goes to one of the users who have the fewest, and
 * among these to the one whose last turn was longest ago, so that asking for many takes no turns from others. Requests
 * of the same user, or without users, are served in order of arrival. Dispose a place to return it (twice is
 * harmless).
 */
export class FairLimit {
  readonly #options: Required<FairLimitOptions>
  /** Number of places of each user; users without any are omitted. */
  readonly #held = new Map<string, number>()
  /** The waiters by user, in order of turns. A Set, because it removes one that leaves in constant time. */
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

  /** Whether a user other than this one is waiting. */
  isWantedByOthers(user: string): boolean {
    return this.#waiting > (this.#queues.get(user)?.size ?? 0)
  }

  /** Returns a place immediately, or undefined. */
  tryAcquire(user = ''): Disposable | undefined {
    // A freed place is passed to a waiter immediately, so nobody waits while one is free.
    if (this.#used >= this.#options.places) return undefined
    this.#used += 1
    return this.#place(user)
  }

  /** Whether acquire() may be called: there is a free place, or room to wait for one. */
  hasRoomFor(user: string): boolean {
    const { places, waitingMax, waitingPerUserMax } = this.#options
    if (this.#used < places) return true
    return this.#waiting < waitingMax && (this.#queues.get(user)?.size ?? 0) < waitingPerUserMax
  }

  /** Waits for a place. Rejects with the signal's reason and leaves the queue. */
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

  /** A user who has had a turn moves behind all others. */
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
