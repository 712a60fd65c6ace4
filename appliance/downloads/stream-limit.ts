import type { DownloadTotals } from '../../native/addon.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import { FairLimit } from '../../src/shared/base/fair-limit.ts'
import { JoinedSignal } from '../../src/shared/base/joined-signal.ts'
import { DOWNLOAD_SLOTS } from '../appliance-config.ts'

/** The user of a download slot; listed in the error when none is free. */
export interface Reader {
  /** The kind of download, such as "timerange". */
  readonly mode: string
  /** The request line; it contains no credentials, which are sent in a header. */
  readonly commandLine: string
  /** What is downloaded: a capture's name or a time range. */
  readonly what: string
  /** Full names of the captures that are read. */
  readonly captures: readonly string[]
  readonly filter: string | undefined
  /** Bytes kept of each packet; undefined = all. */
  readonly sliceBytes: number | undefined
  readonly user: string
  /** Whether it continues with packets as they arrive, without a known end. */
  readonly follows: boolean
  /** RFC 3339, UTC. */
  readonly startedAt: string
  /** Bytes of the body returned so far. */
  bytes: bigint
  /** Returns the engine's live figures; undefined until the engine has begun. */
  totals: (() => DownloadTotals) | undefined
}

export interface SlotRequest {
  /** 0 = fail at once. */
  readonly waitMs: number
  readonly signal: AbortSignal
}

/** Scripts should neither retry too fast nor sleep too long. */
const RETRY_AFTER_S = 2

/** One slot is never given to a download that follows, which could hold it forever. */
const FOLLOWER_SLOTS = DOWNLOAD_SLOTS - 1

/** The four download slots of a device. */
export class StreamLimit {
  readonly #limit = new FairLimit({ places: DOWNLOAD_SLOTS })
  readonly #followers = new FairLimit({ places: FOLLOWER_SLOTS })
  /** When each user was last refused a slot (performance.now()). */
  readonly #refusedAtMs = new Map<string, number>()
  readonly #readers = new Map<number, Reader>()

  /** The running downloads. */
  get readers(): ReadonlySet<Reader> {
    return new Set(this.#readers.values())
  }

  /** The same by slot: 0 to 3; a download keeps its slot. */
  get readersBySlot(): ReadonlyMap<number, Reader> {
    return this.#readers
  }

  get waiting(): number {
    return this.#limit.waiting + this.#followers.waiting
  }

  /** Whether another user is waiting for what this reader holds, or was refused it within the last `withinMs`. */
  isWantedByOthers({ user, follows }: Reader, withinMs: number): boolean {
    if (this.#limit.isWantedByOthers(user)) return true
    if (follows && this.#followers.isWantedByOthers(user)) return true
    const sinceMs = performance.now() - withinMs
    return [...this.#refusedAtMs].some(([other, atMs]) => other !== user && atMs >= sinceMs)
  }

  /**
   * Waits for a slot, which is held until the result is disposed. Among the waiting users, the one with the fewest
   * slots is next. Fails with download-slots-exhausted if no slot becomes free in time, or with the signal's reason.
   */
  async acquire(reader: Reader, request: SlotRequest): Promise<Disposable> {
    using place = new DisposableStack()
    place.use(await this.#place(reader, request))
    const slot = this.#freeSlot()
    this.#readers.set(slot, reader)
    place.defer(() => this.#readers.delete(slot))
    return place.move()
  }

  #freeSlot(): number {
    for (let slot = 0; slot < DOWNLOAD_SLOTS; slot++) if (!this.#readers.has(slot)) return slot
    throw new Error('a place was given though every slot is in use')
  }

  async #place({ user, follows }: Reader, { waitMs, signal }: SlotRequest): Promise<Disposable> {
    signal.throwIfAborted()
    using joined = new JoinedSignal([signal], waitMs)
    const limits = follows ? [this.#followers, this.#limit] : [this.#limit]
    using places = new DisposableStack()
    try {
      for (const limit of limits)
        places.use(limit.tryAcquire(user) ?? (await limit.acquire(joined.signal, user)))
      return places.move()
    } catch (error) {
      signal.throwIfAborted()
      if (joined.signal.aborted) throw this.#exhausted(user)
      throw error
    }
  }

  #exhausted(refused: string): CapfleetError {
    this.#refusedAtMs.set(refused, performance.now())
    const readers = [...this.#readers.values()].map(({ what, filter, user, startedAt, bytes }) => ({
      what,
      filter,
      user,
      startedAt,
      bytes: String(bytes),
    }))
    return new CapfleetError(
      'download-slots-exhausted',
      `all ${DOWNLOAD_SLOTS} download slots are in use, or ${FOLLOWER_SLOTS} by downloads with Follow=1 like this one; try again, or add Wait=60 to wait for one`,
      { retryAfterS: RETRY_AFTER_S, members: { readers } },
    )
  }
}
