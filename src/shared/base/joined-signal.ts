/**
 * One signal for several reasons to stop, and perhaps for a limit of time: it aborts with the first of its sources and has
 * that one's reason, or with a TimeoutError. Dispose it when nobody needs it any more; it aborts no more then.
 *
 * AbortSignal.any() does the same of several sources and an AbortSignal.timeout(), but Node.js 24 never forgets a signal
 * that is made of that one: a leak with every request.
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

  /** It does not abort any more. Idempotent. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    clearImmediate(this.#lastLook)
    for (const source of this.#sources) source.removeEventListener('abort', this.#onAbort)
  }

  /**
   * When the event loop is late, timers run before the sockets are read: what arrived in time is then still unread, and
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
