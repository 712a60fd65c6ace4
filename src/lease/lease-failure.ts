/** The ways in which a lease is not given. */
import { CapfleetError } from '../base/error.ts'
import type { LeaseRequest } from './lease.ts'

/** Nothing became free within the wait; `position` is the place in line at its end. */
export function queueTimeout(request: LeaseRequest, position: number): CapfleetError {
  const devices = request.devices.join(', ')
  return new CapfleetError(
    'queue-timeout',
    `no download slot became free on ${devices} within ${request.waitMs / 1_000} s; try again, or wait longer with Wait=`,
    { retryAfterS: 5, members: { position: Math.max(1, position), devices: request.devices } },
  )
}

/** Redis does not answer. */
export function schedulerUnavailable(cause: unknown): CapfleetError {
  return new CapfleetError(
    'scheduler-unavailable',
    'the scheduler (Redis) cannot be reached, so no new download can start; running ones go on',
    { retryAfterS: 5, cause },
  )
}

/** For `catch`: whatever Redis said, the caller hears that the scheduler is away. */
export function asUnavailable(cause: unknown): never {
  throw schedulerUnavailable(cause)
}

/** No new work is taken. */
export function shuttingDown(): CapfleetError {
  return new CapfleetError('draining', 'the gateway is shutting down; ask another replica or try again', {
    retryAfterS: 5,
  })
}
