/** How requests are told apart when they compete: a person waits for `interactive` ones. */
export type LeaseClass = 'interactive' | 'bulk'

export interface LeaseRequest {
  /** Unique over all replicas; the request is shown under it in the queue. */
  readonly id: string
  /** Names of the devices, at least one, each once; all are granted together. */
  readonly devices: readonly string[]
  readonly class: LeaseClass
  readonly user: string
  /** Whoever waits for the lease; when it aborts, nothing stays behind. */
  readonly signal: AbortSignal
  /** Longest time in the queue; 0 = now or never. */
  readonly waitMs: number
  /** Bytes of it are with its client already: it is not handed back when the replica drains. */
  readonly hasBegun?: boolean
  /** Called when the request has to wait, and may be called again as it moves up. */
  readonly onPosition?: (place: QueuePlace) => void
}

export interface QueuePlace {
  /** n-th in line, from 1, on the device where most are before it. */
  readonly position: number
  /** Time until its turn, from how long streams take there; undefined where nobody knows (places.lua). */
  readonly etaMs: number | undefined
}

/** Permission to hold one stream open on each of `devices`. Disposing it gives them back; twice is legal. */
export interface Lease extends AsyncDisposable {
  readonly id: string
  readonly devices: readonly string[]
  /** The user who asked for the lease. */
  readonly user: string
  readonly waitedMs: number
  /** Aborts when the lease can no longer be vouched for: the streams under it must be cut at once. */
  readonly lost: AbortSignal
  /**
   * All streams under the lease have begun. Told or not, no stream may begin later than
   * LeaseTimings.openMs after the grant; told, streams of a gateway that died are free sooner.
   */
  opened(): void
  /**
   * A stream under the lease has ended and is opened again: to be called before that, at once, and
   * opened() when all streams have begun again. No stream may begin later than LeaseTimings.openMs
   * after the last call.
   */
  reopening(): void
  /**
   * The device `busy` answered that all its streams are in use; its limit is lowered for a while.
   * REQUIRES: no stream under the lease is open. The lease goes back into the queue at its old place.
   * Resolves when it is granted again, rejects as acquire() does; the lease is then given back.
   */
  requeue(busy: string, options: RequeueOptions): Promise<void>
}

export interface RequeueOptions {
  readonly signal: AbortSignal
  /** For how long the limit is lowered; default: LeaseTimings.busyMs. */
  readonly busyMs?: number | undefined
  readonly waitMs: number
}

/** Use of one device, over all replicas. */
export interface DeviceUse {
  readonly used: number
  readonly waiting: number
  /** How many streams it is given for a while, because it refused one more; left out: as many as are configured. */
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
  /** The place in line of a waiting request, as QueuePlace has it. */
  readonly position: number | undefined
  readonly etaMs: number | undefined
}
