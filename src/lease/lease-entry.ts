import type { CapfleetError } from '../base/error.ts'
import type { LeaseRequest } from './lease.ts'
import type { OwnedRequest, QueueTicket } from './lease-scripts.ts'

/** A request that has been sent to Redis and not yet given back. */
export interface LeaseEntry {
  readonly request: LeaseRequest
  readonly startedMs: number
  readonly lost: AbortController
  /** Undefined until Redis has it. */
  ticket: QueueTicket | undefined
  /** Grows with everything that the replica asks for; a grant of an earlier turn is no grant. */
  turn: number
  /** `leaving`: its wait is over and its release on the way; a grant that comes now is nobody's. */
  state: 'waiting' | 'held' | 'leaving'
  /** All streams under it have begun. */
  opened: boolean
  /** Settles the wait: no argument = granted. */
  wake: (failure?: CapfleetError) => void
}

export function newEntry(request: LeaseRequest, turn: number): LeaseEntry {
  return {
    request,
    startedMs: performance.now(),
    lost: new AbortController(),
    ticket: undefined,
    turn,
    state: 'waiting',
    opened: false,
    wake: () => undefined,
  }
}

/** What Redis must know of the entry; undefined when there is nothing to say. */
export function ownedRequest(entry: LeaseEntry): OwnedRequest | undefined {
  const { request, ticket, turn, state, opened } = entry
  if (ticket === undefined || state === 'leaving') return undefined
  const { id, devices, class: requestClass, user } = request
  const kind = state === 'waiting' ? 'waiting' : opened ? 'open' : 'held'
  return { ...ticket, id, devices, class: requestClass, user, kind, turn }
}
