import { addAbortListener } from 'node:events'
import type { CapfleetError } from '../../shared/base/error.ts'
import type { LeaseRequest, RequeueOptions } from './lease.ts'
import type { OwnedRequest, QueueTicket } from './lease-scripts.ts'

/** How a wait ended: without a failure it was granted. */
interface Woken {
  readonly failure: CapfleetError | undefined
}

/** What a wait holds until it ends. */
interface Wait {
  readonly resolve: () => void
  readonly reject: (failure: CapfleetError) => void
  readonly timer: NodeJS.Timeout
  readonly leaving: Disposable
}

/** A request that has been sent to Redis and not yet given back. Of 100,000 that wait each holds little. */
export class LeaseEntry {
  readonly request: LeaseRequest
  readonly startedMs = performance.now()
  /** The place in the order that Redis gave it; undefined until Redis has answered. */
  ticket: QueueTicket | undefined
  /** Grows with everything that the replica asks for; a grant of an earlier attempt is no grant. */
  attempt: number
  /** `leaving`: its wait is over and its release on the way; a grant that comes now is nobody's. */
  state: 'waiting' | 'held' | 'leaving' = 'waiting'
  /** Whether all streams under the lease have begun. */
  opened = false
  #lost: AbortController | undefined
  #woken: Woken | undefined
  #wait: Wait | undefined

  constructor(request: LeaseRequest, attempt: number) {
    this.request = request
    this.attempt = attempt
  }

  /** Aborts when the lease is lost. It is made at the first use, because a waiter has none for it. */
  get lost(): AbortController {
    this.#lost ??= new AbortController()
    return this.#lost
  }

  /** Makes the entry wait again; what woke it before is forgotten. */
  rewait(attempt: number): void {
    this.attempt = attempt
    this.state = 'waiting'
    this.opened = false
    this.#woken = undefined
  }

  /** Ends the wait, also one that has not begun: no argument = granted. Only the first one counts. */
  wake(failure?: CapfleetError): void {
    if (this.#woken !== undefined) return
    this.#woken = { failure }
    const wait = this.#wait
    if (wait === undefined) return
    this.#wait = undefined
    clearTimeout(wait.timer)
    wait.leaving[Symbol.dispose]()
    if (failure === undefined) wait.resolve()
    else wait.reject(failure)
  }

  /**
   * Settles when it is woken, at once when it has been; the signal wakes it with its reason. After
   * `waitMs` it calls `onTimeout`, which is to wake it.
   */
  woken({ signal, waitMs }: RequeueOptions, onTimeout: (entry: LeaseEntry) => void): Promise<void> {
    if (signal.aborted) this.wake(signal.reason)
    const woken = this.#woken
    if (woken !== undefined)
      return woken.failure === undefined ? Promise.resolve() : Promise.reject(woken.failure)
    return new Promise((resolve, reject) => {
      const leaving = addAbortListener(signal, () => this.wake(signal.reason))
      this.#wait = { resolve, reject, timer: setTimeout(onTimeout, waitMs, this), leaving }
    })
  }
}

/** What Redis must know of the entry; undefined when there is nothing to say. */
export function ownedRequest(entry: LeaseEntry): OwnedRequest | undefined {
  const { request, ticket, attempt, state, opened } = entry
  if (ticket === undefined || state === 'leaving') return undefined
  const { id, devices, class: requestClass, user } = request
  const kind = state === 'waiting' ? 'waiting' : opened ? 'open' : 'held'
  return { ...ticket, id, devices, class: requestClass, user, kind, attempt }
}
