/** All in milliseconds. */
export interface LeaseTimings {
  readonly heartbeatMs: number
  /** A replica silent for so long has lost its lease. */
  readonly leaseTtlMs: number
  /** How long after that its grants still count. */
  readonly suspectMs: number
  /** Without an acknowledged heartbeat for so long nobody waits any longer for a lease. */
  readonly unavailableMs: number
  /**
   * Without an acknowledged heartbeat for so long the replica cuts its own streams. Must be before
   * leaseTtlMs + suspectMs, when others may use their places. A short outage of Redis cuts nothing.
   */
  readonly fenceMs: number
}

export const LEASE_TIMINGS: LeaseTimings = {
  heartbeatMs: 1_000,
  leaseTtlMs: 6_000,
  suspectMs: 60_000,
  unavailableMs: 4_000,
  fenceMs: 60_000,
}
