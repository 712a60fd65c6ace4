/** The ways in which a lease is not given. */
import { CapfleetError, secondsText } from '../../shared/base/error.ts'
import type { LeaseRequest } from './lease.ts'

/** Where nobody knows better. */
const RETRY_S = 5
const RETRY_MOST_S = 60

/** The place in line when the wait ended, if it was known. */
interface EndPlace {
  readonly position?: number | undefined
  readonly etaMs?: number | undefined
}

/** The error when no stream became free within the wait, however often a busy device sent the request back to the queue. */
export function queueTimeout(request: LeaseRequest, place: EndPlace = {}): CapfleetError {
  const etaS = place.etaMs === undefined ? RETRY_S : Math.ceil(place.etaMs / 1_000)
  return new CapfleetError('queue-timeout', inVain(request.devices.join(', '), request.waitMs), {
    retryAfterS: Math.min(Math.max(1, etaS), RETRY_MOST_S),
    members: { position: place.position ?? 1, devices: request.devices },
  })
}

function inVain(devices: string, waitMs: number): string {
  if (waitMs === 0) return `no download slot is free on ${devices}; try again, or wait for one with Wait=`
  const waited = secondsText(waitMs)
  return `no download slot became free on ${devices} within ${waited}; try again, or wait longer with Wait=`
}

/** The error when Redis does not answer. */
export function schedulerUnavailable(cause: unknown): CapfleetError {
  return new CapfleetError(
    'scheduler-unavailable',
    'the scheduler (Redis) cannot be reached, so no new download can start; running ones continue',
    { retryAfterS: RETRY_S, cause },
  )
}

/** For `catch`: whatever Redis said, the caller hears that the scheduler is away. */
export function asUnavailable(cause: unknown): never {
  throw schedulerUnavailable(cause)
}

/** Another replica is there now, or this one again soon. */
const DRAINING_RETRY_S = 1

/** The error when the gateway takes no new work. */
export function shuttingDown(): CapfleetError {
  return new CapfleetError('draining', 'the gateway is shutting down; ask another replica or try again', {
    retryAfterS: DRAINING_RETRY_S,
  })
}
