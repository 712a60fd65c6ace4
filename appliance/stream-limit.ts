import { CapfleetError } from '../src/base/error.ts'
import { DOWNLOAD_SLOTS } from './appliance-config.ts'
import { FifoLimit } from './fifo-limit.ts'

/** Who uses a download slot; listed to those who find none free. */
export interface Reader {
  /** What is downloaded: a capture's name or a time range. */
  readonly what: string
  /** Full names of the captures that are read. */
  readonly captures: readonly string[]
  readonly filter: string | undefined
  readonly user: string | undefined
  /** RFC 3339, UTC. */
  readonly startedAt: string
  /** Bytes of the body handed out so far. */
  bytes: bigint
}

export interface SlotRequest {
  /** 0 = fail at once. */
  readonly waitMs: number
  readonly signal: AbortSignal
}

/** Scripts that retry should not hammer, and not sleep long either. */
const RETRY_AFTER_S = 2

/** The four download slots of a device (API section 8). */
export class StreamLimit {
  readonly #limit = new FifoLimit(DOWNLOAD_SLOTS)
  readonly #readers = new Set<Reader>()

  /** Downloads that run now. */
  get readers(): ReadonlySet<Reader> {
    return this.#readers
  }

  get waiting(): number {
    return this.#limit.waiting
  }

  /**
   * A slot until dispose, in order of arrival. Fails with download-slots-exhausted when none
   * becomes free in time, or with the signal's reason.
   */
  async acquire(reader: Reader, request: SlotRequest): Promise<Disposable> {
    const place = await this.#place(request)
    this.#readers.add(reader)
    return {
      [Symbol.dispose]: () => {
        this.#readers.delete(reader)
        place[Symbol.dispose]()
      },
    }
  }

  async #place({ waitMs, signal }: SlotRequest): Promise<Disposable> {
    signal.throwIfAborted()
    const free = this.#limit.tryAcquire()
    if (free) return free
    if (waitMs === 0) throw this.#exhausted()
    const timeout = AbortSignal.timeout(waitMs)
    try {
      return await this.#limit.acquire(AbortSignal.any([signal, timeout]))
    } catch (error) {
      signal.throwIfAborted()
      if (timeout.aborted) throw this.#exhausted()
      throw error
    }
  }

  #exhausted(): CapfleetError {
    const readers = [...this.#readers].map(({ what, filter, user, startedAt, bytes }) => ({
      what,
      filter,
      user,
      startedAt,
      bytes: String(bytes),
    }))
    return new CapfleetError(
      'download-slots-exhausted',
      `all ${DOWNLOAD_SLOTS} download slots are in use; try again, or add Wait=60 to wait for one`,
      { retryAfterS: RETRY_AFTER_S, members: { readers } },
    )
  }
}
