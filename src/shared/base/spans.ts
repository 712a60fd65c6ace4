/**
 * Spans: what the time of a request was spent on, for a trace collector. If none is configured, or the trace of the
 * request is not recorded, nothing is stored or sent.
 */
import type { SpanAttributes, SpanKind } from './ended-span.ts'
import { currentRequest, withinRequest } from './request-context.ts'
import { childOf } from './trace-context.ts'

/** Milliseconds since 1970, with fractions; never goes backwards. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now()
}

/** A part of the work for the current request. */
export class Span {
  readonly #name: string
  readonly #kind: SpanKind
  readonly #attributes: SpanAttributes
  readonly #request = currentRequest()
  readonly #trace =
    this.#request?.spans && this.#request.trace.isSampled ? childOf(this.#request.trace) : undefined
  readonly #startMs = epochMs()
  #hasEnded = false

  /** Begins now. `attributes` must not reveal packets or secrets. */
  constructor(name: string, kind: SpanKind, attributes: SpanAttributes = {}) {
    this.#name = name
    this.#kind = kind
    this.#attributes = attributes
  }

  /** Requests made meanwhile are part of this span. */
  within<Result>(run: () => Result): Result {
    if (this.#request === undefined || this.#trace === undefined) return run()
    return withinRequest({ ...this.#request, trace: this.#trace }, run)
  }

  /** The first call counts. */
  end(error?: unknown): void {
    if (this.#hasEnded || this.#trace === undefined) return
    this.#hasEnded = true
    this.#request?.spans?.add({
      name: this.#name,
      kind: this.#kind,
      trace: this.#trace,
      startMs: this.#startMs,
      endMs: epochMs(),
      attributes: this.#attributes,
      error: error === undefined ? undefined : String(error),
    })
  }
}
