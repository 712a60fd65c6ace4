/**
 * One signal for several reasons to stop, and optionally for a time limit: it aborts with the first of its sources and
 * has that one's reason, or with a TimeoutError. Dispose it when it is no longer needed; it does not abort after that.
 *
 * AbortSignal.any() could combine several sources and an AbortSignal.timeout(), but Node.js 24 never frees a signal
 * that includes one of those: a leak with every request.
 */
export class JoinedSignal implements Disposable {
  readonly #controller = new AbortController()
  readonly #sources: readonly AbortSignal[]
  readonly #timer: NodeJS.Timeout | undefined
  #lastLook: NodeJS.Immediate | undefined
  readonly #onAbort = (event: Event): void => this.#abort((event.target as AbortSignal).reason)

  /** With a `timeoutMs` of 0 it is aborted from the beginning. */
  constructor(sources: readonly AbortSignal[], timeoutMs?: number) {
    this.#sources = sources
    for (const source of sources) source.addEventListener('abort', this.#onAbort, { once: true })
    if (timeoutMs !== undefined) this.#timer = setTimeout(() => this.#timeOut(timeoutMs), timeoutMs)
    const aborted = sources.find((source) => source.aborted)
    if (aborted !== undefined) this.#abort(aborted.reason)
    else if (timeoutMs === 0) this.#abort(timedOut(timeoutMs))
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Prevents it from aborting later. Idempotent. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    clearImmediate(this.#lastLook)
    for (const source of this.#sources) source.removeEventListener('abort', this.#onAbort)
  }

  /**
   * If the event loop is late, timers run before sockets are read: data that arrived in time is then still unread, and
   * must not count as late.
   */
  #timeOut(timeoutMs: number): void {
    this.#lastLook = setImmediate(() => this.#abort(timedOut(timeoutMs)))
  }

  #abort(reason: unknown): void {
    this[Symbol.dispose]()
    this.#controller.abort(reason)
  }
}

function timedOut(timeoutMs: number): DOMException {
  return new DOMException(`no response within ${timeoutMs} ms`, 'TimeoutError')
}
