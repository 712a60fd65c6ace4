export interface WorkerTimings {
  /** A worker that does not renew its hold on a job for so long has lost it. */
  readonly lockMs: number
  /** How often jobs of workers that died are looked for. */
  readonly stalledMs: number
  /** How often lost work and expired files are looked for. */
  readonly upkeepMs: number
  /** How often a canary is sent. */
  readonly canaryMs: number
  /** A worker that has room and takes no job for so long has gone silent. */
  readonly silentMs: number
}

export const WORKER_TIMINGS: WorkerTimings = {
  lockMs: 15_000,
  stalledMs: 10_000,
  upkeepMs: 10_000,
  canaryMs: 10_000,
  silentMs: 45_000,
}
