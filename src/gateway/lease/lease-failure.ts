/** The errors of requests for leases. */

import { CapfleetError, secondsText } from '../../shared/base/error.ts'
import { listText } from '../../shared/base/list-text.ts'
import type { LeaseRequest } from './lease.ts'

/** Used if no better estimate is known. */
const RETRY_S = 5
const RETRY_MOST_S = 60

/** The position in the queue when the wait ended, if known. */
interface EndPlace {
  readonly position?: number | undefined
  readonly etaMs?: number | undefined
}

/**
 * The error if no stream became free within the wait, however often a busy device sent the request back to the queue.
 */
export function queueTimeout(request: LeaseRequest, place: EndPlace = {}): CapfleetError {
  const etaS = place.etaMs === undefined ? RETRY_S : Math.ceil(place.etaMs / 1_000)
  return new CapfleetError('queue-timeout', inVain(listText(request.devices), request.waitMs), {
    retryAfterS: Math.min(Math.max(1, etaS), RETRY_MOST_S),
    members: { position: place.position ?? 1, devices: request.devices },
  })
}

function inVain(devices: string, waitMs: number): string {
  if (waitMs === 0) return `no download slot is free on ${devices}; try again, or wait for one with Wait=`
  const waited = secondsText(waitMs)
  return `no download slot became free on ${devices} within ${waited}; try again, or wait longer with Wait=`
}

/** The error if Redis does not answer. */
export function schedulerUnavailable(cause: unknown): CapfleetError {
  return new CapfleetError(
    'scheduler-unavailable',
    'the scheduler (Redis) cannot be reached, so no new download can start',
    { retryAfterS: RETRY_S, cause },
  )
}

/** For `catch`: whatever Redis said, the caller gets scheduler-unavailable. */
export function asUnavailable(cause: unknown): never {
  throw schedulerUnavailable(cause)
}

/** The error of a request that `by` has cancelled. */
export function cancelledBy(by: string): CapfleetError {
  return new CapfleetError('download-cancelled', `${by} cancelled the request in the queue`)
}

/** By then another replica, or this one restarted, accepts requests. */
const DRAINING_RETRY_S = 1

/** The error if the gateway accepts no new work. */
export function shuttingDown(): CapfleetError {
  return new CapfleetError('draining', 'the gateway is shutting down; ask another replica or try again', {
    retryAfterS: DRAINING_RETRY_S,
  })
}
