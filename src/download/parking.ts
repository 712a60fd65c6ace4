/**
 * A client that hardly reads keeps streams that others wait for: they are given back, the client is
 * kept, and when it has read what it was sent, the download goes into the queue again.
 */
import type { ServerResponse } from 'node:http'

/** A client that takes less in a turn is slow. */
const SLOW_BYTES = 1_048_576

export interface ParkingOptions {
  readonly res: ServerResponse
  /** Of the download; no more turns after it. */
  readonly signal: AbortSignal
  /** How long a turn is. */
  readonly turnMs: number
  /** Bytes of the body that were written so far, taken by the client or not. */
  readonly writtenBytes: () => bigint
  /** Whether others wait for a device of the download. */
  readonly isWanted: () => Promise<boolean>
  /** Gives streams and leases back. */
  readonly park: () => Promise<void>
  /** Waits for a lease and goes on. */
  readonly unpark: () => Promise<void>
  /** The download cannot go on. */
  readonly onFailure: (error: unknown) => void
}

/** Watches the client from its creation on. */
export class Parking implements Disposable {
  readonly #options: ParkingOptions
  readonly #timer: NodeJS.Timeout
  #takenBefore = 0n
  #busy = false
  #ended = false

  constructor(options: ParkingOptions) {
    this.#options = options
    this.#timer = setInterval(() => void this.#turn(), options.turnMs)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#ended = true
  }

  async #turn(): Promise<void> {
    const { signal, onFailure } = this.#options
    if (this.#busy) return
    this.#busy = true
    try {
      if (this.#isSlow() && (await this.#options.isWanted())) await this.#parkUntilRead()
    } catch (error) {
      if (!signal.aborted) onFailure(error)
    } finally {
      this.#busy = false
    }
  }

  #isSlow(): boolean {
    const { res, writtenBytes } = this.#options
    const taken = writtenBytes() - BigInt(res.writableLength)
    const isSlow = taken - this.#takenBefore < SLOW_BYTES
    this.#takenBefore = taken
    // Without anything to take, it is the devices that are slow.
    return isSlow && res.writableLength > 0
  }

  async #parkUntilRead(): Promise<void> {
    const { res, signal, park, unpark } = this.#options
    if (this.#ended || signal.aborted || res.writableLength === 0) return
    await park()
    await allTaken(res, signal)
    if (!this.#ended) await unpark()
  }
}

/** Resolves when everything that was written has left. */
async function allTaken({ socket }: ServerResponse, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    // 'drain' comes only after more than a little was written; this is done in its turn.
    socket?.write(new Uint8Array(0), () => resolve())
  })
}
