import type { ServerResponse } from 'node:http'
import type { Chunk } from '../../native/addon.ts'

/** One in transit and one ready: the socket never runs dry, and memory stays at 2 MiB. */
const WRITES_IN_FLIGHT = 2

/**
 * Passes the engine's pooled buffers to a response without copying: each returns to its pool when the socket has
 * accepted it. The caller waits while two are in transit.
 */
export class BodyWriter {
  readonly #res: ServerResponse
  readonly #inFlight = new Set<Chunk>()
  #changed: (() => void) | undefined

  constructor(res: ServerResponse) {
    this.#res = res
    // When a connection is closed, no write refers to memory any more, but a write that was still queued after an
    // earlier answer gets no callback.
    res.once('close', () => {
      for (const chunk of this.#inFlight) this.#release(chunk)
    })
  }

  /** Whether bytes are waiting for the client to read them. */
  get isBusy(): boolean {
    return this.#inFlight.size > 0
  }

  /** Takes ownership of the chunk. Resolves when there is room for another one, or the connection is closed. */
  async write(chunk: Chunk): Promise<void> {
    this.#inFlight.add(chunk)
    if (this.#res.closed) {
      this.#release(chunk)
      return
    }
    this.#res.write(chunk.bytes, () => this.#release(chunk))
    while (this.#inFlight.size >= WRITES_IN_FLIGHT) await this.#nextChange()
  }

  /** Resolves when the socket has accepted everything, or the connection is closed. */
  async flush(): Promise<void> {
    while (this.#inFlight.size > 0) await this.#nextChange()
  }

  #nextChange(): Promise<void> {
    return new Promise((resolve) => {
      this.#changed = resolve
    })
  }

  #release(chunk: Chunk): void {
    if (!this.#inFlight.delete(chunk)) return
    chunk.release()
    this.#changed?.()
  }
}
