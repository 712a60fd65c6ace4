/** The class of a request: a person is waiting for `interactive` ones. */
export type LeaseClass = 'interactive' | 'bulk'

export interface LeaseRequest {
  /** Unique across all replicas; the queue shows the request under this id. */
  readonly id: string
  /** Names of the devices, at least one, each once; all are granted together. */
  readonly devices: readonly string[]
  readonly class: LeaseClass
  readonly user: string
  /** Signal of the waiting caller; when it aborts, nothing is left behind. */
  readonly signal: AbortSignal
  /** Longest time in the queue; 0 = now or never. */
  readonly waitMs: number
  /** Whether its client already has some of its bytes; it is then not rejected when the replica drains. */
  readonly hasBegun?: boolean
  /** Called if the request has to wait, and possibly again as it moves up. */
  readonly onPosition?: (place: QueuePlace) => void
}

export interface QueuePlace {
  /** Position in the queue, from 1, on the device where most requests are before it. */
  readonly position: number
  /** Estimated time until its turn, from the duration of streams there; undefined if unknown (places.lua). */
  readonly etaMs: number | undefined
}

/** Permission to hold one stream open on each of `devices`. Dispose it to return them; doing so twice is allowed. */
export interface Lease extends AsyncDisposable {
  readonly id: string
  readonly devices: readonly string[]
  /** The user who asked for the lease. */
  readonly user: string
  readonly waitedMs: number
  /** Aborts when the lease can no longer be relied on: the streams under it must be cut at once. */
  readonly lost: AbortSignal
  /**
   * Reports that all streams under the lease have begun. Whether reported or not, no stream may begin later than
   * LeaseTimings.openMs after the grant; if reported, streams of a gateway that died become free sooner.
   */
  opened(): void
  /**
   * Reports that a stream under the lease has ended and is being reopened. Must be called immediately before that, and
   * opened() when all streams have begun again. No stream may begin later than LeaseTimings.openMs after the last
   * call.
   */
  reopening(): void
  /**
   * Reports that the device `busy` answered that all its streams are in use; its limit is lowered temporarily.
   * REQUIRES: no stream under the lease is open. The lease returns to its old place in the queue. Resolves when it is
   * granted again; rejects like acquire(), and the lease is then released.
   */
  requeue(busy: string, options: RequeueOptions): Promise<void>
}

export interface RequeueOptions {
  readonly signal: AbortSignal
  /** How long the limit is lowered. Default: LeaseTimings.busyMs. */
  readonly busyMs?: number | undefined
  readonly waitMs: number
}

/** Use of one device, across all replicas. */
export interface DeviceUse {
  readonly used: number
  readonly waiting: number
  /** Temporary limit of streams, because the device refused another one. Absent: the configured limit applies. */
  readonly limit?: number
}

/** One request in the queue, of any replica. */
export interface QueueRow {
  readonly id: string
  /** "suspect": its replica is silent, and the device may still be sending. */
  readonly state: 'streaming' | 'suspect' | 'waiting'
  readonly devices: readonly string[]
  readonly class: LeaseClass
  readonly user: string
  readonly replica: string
  readonly enqueuedMs: number
  readonly grantedMs: number | undefined
  /** The position of a waiting request, as in QueuePlace. */
  readonly position: number | undefined
  readonly etaMs: number | undefined
}
