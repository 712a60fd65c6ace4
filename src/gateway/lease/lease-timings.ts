/** All in milliseconds. */
export interface LeaseTimings {
  readonly heartbeatMs: number
  /** A replica silent for so long has lost its lease. Also how long nothing is granted after Redis was restarted. */
  readonly leaseTtlMs: number
  /** How long the grants of a lapsed replica still count on a device that cannot tell its readers. */
  readonly suspectMs: number
  /** After this time without an acknowledged heartbeat, waiters are told that the scheduler is unavailable. */
  readonly unavailableMs: number
  /**
   * Without an acknowledged heartbeat for so long the replica cuts its own streams on devices that
   * cannot tell their readers. Must be well before leaseTtlMs + suspectMs, when others may have
   * theirs. Infinity where no other replica exists.
   */
  readonly fenceMs: number
  /** A device that answered "busy" gets no more streams than it has for so long. */
  readonly busyMs: number
  /** Within this time after a grant its streams have begun, or the lease was given back. */
  readonly openMs: number
}

export const LEASE_TIMINGS: LeaseTimings = {
  heartbeatMs: 1_000,
  leaseTtlMs: 5_000,
  suspectMs: 60_000,
  unavailableMs: 6_000,
  fenceMs: 55_000,
  busyMs: 5_000,
  openMs: 30_000,
}
