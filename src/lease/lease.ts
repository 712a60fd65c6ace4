/** How requests are told apart when they compete: a person waits for `interactive` ones. */
export type LeaseClass = 'interactive' | 'bulk'

export interface LeaseRequest {
  /** Names of the devices, at least one; all are granted together. */
  readonly devices: readonly string[]
  readonly class: LeaseClass
  readonly user: string
  /** Whoever waits for the lease; when it aborts, nothing stays behind. */
  readonly signal: AbortSignal
  /** Longest time in the queue; 0 = now or never. */
  readonly waitMs: number
}

/** Permission to hold one stream open on each of `devices`. Disposing it gives them back; twice is legal. */
export interface Lease extends AsyncDisposable {
  readonly id: string
  readonly devices: readonly string[]
  readonly waitedMs: number
  /** Aborts when the lease can no longer be vouched for: the streams under it must be cut at once. */
  readonly lost: AbortSignal
}

/** Use of one device, over all replicas. */
export interface DeviceUse {
  readonly used: number
  readonly waiting: number
}
