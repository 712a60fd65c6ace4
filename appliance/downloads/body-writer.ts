import type { ServerResponse } from 'node:http'
import type { Chunk } from '../../native/addon.ts'

/** One being sent and one ready: the socket never runs dry, and memory stays at 2 MiB. */
const WRITES_IN_FLIGHT = 2

/**
 * Hands the engine's pooled buffers to a response without copying: each goes back to its pool when
 * the socket has taken it. The caller waits while two are on their way.
 */
export class BodyWriter {
  readonly #res: ServerResponse
  readonly #inFlight = new Set<Chunk>()
  #changed: (() => void) | undefined

  constructor(res: ServerResponse) {
    this.#res = res
    // When a connection is gone, no write refers to memory any more, but a write that was still
    // queued behind an earlier answer gets no call-back.
    res.once('close', () => {
      for (const chunk of this.#inFlight) this.#release(chunk)
    })
  }

  /** Whether bytes are waiting for the client to take them. */
  get isBusy(): boolean {
    return this.#inFlight.size > 0
  }

  /** Takes over the chunk. Resolves when there is room for another one, or the connection is gone. */
  async write(chunk: Chunk): Promise<void> {
    this.#inFlight.add(chunk)
    if (this.#res.closed) {
      this.#release(chunk)
      return
    }
    this.#res.write(chunk.bytes, () => this.#release(chunk))
    while (this.#inFlight.size >= WRITES_IN_FLIGHT) await this.#nextChange()
  }

  /** Resolves when the socket has taken everything, or the connection is gone. */
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
