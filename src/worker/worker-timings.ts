export interface WorkerTimings {
  /** A worker that does not renew its lock on a job for this long has lost it. */
  readonly lockMs: number
  /** How often to look for jobs of workers that died. */
  readonly stalledMs: number
  /** How often to look for lost work and expired files. */
  readonly upkeepMs: number
  /** How often a canary is sent. */
  readonly canaryMs: number
  /** A worker that has room and takes no job for this long has gone silent. */
  readonly silentMs: number
}

export const WORKER_TIMINGS: WorkerTimings = {
  lockMs: 15_000,
  stalledMs: 10_000,
  upkeepMs: 10_000,
  canaryMs: 10_000,
  silentMs: 45_000,
}
