/** All in milliseconds. */
export interface LeaseTimings {
  readonly heartbeatMs: number
  /**
   * A replica that is silent for this long has lost its lease. Also how long nothing is granted after Redis was
   * restarted.
   */
  readonly leaseTtlMs: number
  /** How long the grants of a lapsed replica still count on a device that does not report its readers. */
  readonly suspectMs: number
  /** After this time without an acknowledged heartbeat, waiters get scheduler-unavailable. */
  readonly unavailableMs: number
  /**
   * After this time without an acknowledged heartbeat the replica cuts its own streams on devices that do not report
   * their readers. Must be well below leaseTtlMs + suspectMs, when they may be given to others. Infinity if no other
   * replica exists.
   */
  readonly fenceMs: number
  /** For this long, a device that answered "busy" gets no more streams than it has. */
  readonly busyMs: number
  /** Within this time after a grant, its streams have begun or the lease was returned. */
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
