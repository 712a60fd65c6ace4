import { addAbortListener } from 'node:events'
import type { CapfleetError } from '../../shared/base/error.ts'
import type { LeaseRequest, RequeueOptions } from './lease.ts'
import type { OwnedRequest, QueueTicket } from './lease-scripts.ts'

/** How a wait ended: if there is no failure, it was granted. */
interface Woken {
  readonly failure: CapfleetError | undefined
}

/** The state of a wait until it ends. */
interface Wait {
  readonly resolve: () => void
  readonly reject: (failure: CapfleetError) => void
  readonly timer: NodeJS.Timeout
  readonly leaving: Disposable
}

/** A request that has been sent to Redis and not released yet. Kept small, because 100,000 may be waiting. */
export class LeaseEntry {
  readonly request: LeaseRequest
  readonly startedMs = performance.now()
  /** The place in the order that Redis assigned; undefined until Redis has answered. */
  ticket: QueueTicket | undefined
  /** Increases with everything that the replica requests; a grant of an earlier attempt is void. */
  attempt: number
  /** `leaving`: its wait is over and its release is being sent; a grant that arrives now is not used. */
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

  /** Aborts when the lease is lost. Created on first use, because a waiting request has no use for it. */
  get lost(): AbortController {
    this.#lost ??= new AbortController()
    return this.#lost
  }

  /** Makes the entry wait again, ignoring what woke it before. */
  rewait(attempt: number): void {
    this.attempt = attempt
    this.state = 'waiting'
    this.opened = false
    this.#woken = undefined
  }

  /** Ends the wait, even one that has not begun; no argument means granted. Only the first call counts. */
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
   * Settles when it is woken, immediately if it has been already; the signal wakes it with its reason. After `waitMs`
   * it calls `onTimeout`, which must wake it.
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

/** What Redis must know about the entry, or undefined if there is nothing to report. */
export function ownedRequest(entry: LeaseEntry): OwnedRequest | undefined {
  const { request, ticket, attempt, state, opened } = entry
  if (ticket === undefined || state === 'leaving') return undefined
  const { id, devices, class: requestClass, user } = request
  const kind = state === 'waiting' ? 'waiting' : opened ? 'open' : 'held'
  return { ...ticket, id, devices, class: requestClass, user, kind, attempt }
}
