import { addAbortListener, once } from 'node:events'
import type { ServerResponse } from 'node:http'

export interface SendOptions {
  readonly signal: AbortSignal
  /** Receives every chunk before it is sent. */
  readonly onChunk: (chunk: Uint8Array) => void
  /** Called when the chunks have ended; the last ones may still be in transit. */
  readonly onRead?: () => void
}

/**
 * Writes all chunks with two of them in flight: the one after next is requested when the current one has been sent.
 * Rejects with the signal's reason, or with the failure of the chunks.
 */
export async function sendBody(
  chunks: AsyncIterable<Uint8Array>,
  res: ServerResponse,
  { signal, onChunk, onRead }: SendOptions,
): Promise<void> {
  using writer = new Writer(res, signal)
  let previous: Promise<void> | undefined
  for await (const chunk of chunks) {
    onChunk(chunk)
    const written = writer.write(chunk)
    await previous
    previous = written
  }
  onRead?.()
  await previous
  signal.throwIfAborted()
}

/** Ends the answer and waits until it has been sent or the client has left. */
export async function endBody(
  res: ServerResponse,
  trailers: Readonly<Record<string, string>>,
): Promise<void> {
  if (Object.keys(trailers).length > 0) res.addTrailers(trailers)
  res.end()
  if (!res.closed) await once(res, 'close')
}

/** Writes that end with the signal, even if the client has not read their bytes. */
class Writer implements Disposable {
  readonly #res: ServerResponse
  readonly #signal: AbortSignal
  readonly #flying = new Set<PromiseWithResolvers<void>>()
  readonly #ending: Disposable

  constructor(res: ServerResponse, signal: AbortSignal) {
    this.#res = res
    this.#signal = signal
    this.#ending = addAbortListener(signal, () => {
      for (const { reject } of this.#flying) reject(signal.reason)
    })
  }

  [Symbol.dispose](): void {
    this.#ending[Symbol.dispose]()
  }

  /** Resolves when the bytes have been sent, or were discarded because the client has left. */
  write(chunk: Uint8Array): Promise<void> {
    const flight = Promise.withResolvers<void>()
    // The write may fail during the wait for the previous one.
    flight.promise.catch(() => undefined)
    if (this.#signal.aborted) flight.reject(this.#signal.reason)
    this.#flying.add(flight)
    this.#res.write(chunk, () => {
      this.#flying.delete(flight)
      flight.resolve()
    })
    return flight.promise
  }
}
