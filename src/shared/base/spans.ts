/**
 * Spans: what a request was spent on, for a collector of traces. Where none is configured, or the trace of the request
 * is not recorded, nothing is kept and nothing sent.
 */
import type { SpanAttributes, SpanKind } from './ended-span.ts'
import { currentRequest, withinRequest } from './request-context.ts'
import { childOf } from './trace-context.ts'

/** Milliseconds since 1970 that only go forward, with fractions. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now()
}

/** A part of what is done for the present request. */
export class Span {
  readonly #name: string
  readonly #kind: SpanKind
  readonly #attributes: SpanAttributes
  readonly #request = currentRequest()
  readonly #trace =
    this.#request?.spans && this.#request.trace.isSampled ? childOf(this.#request.trace) : undefined
  readonly #startMs = epochMs()
  #hasEnded = false

  /** Begins now. `attributes` say nothing of packets or secrets. */
  constructor(name: string, kind: SpanKind, attributes: SpanAttributes = {}) {
    this.#name = name
    this.#kind = kind
    this.#attributes = attributes
  }

  /** What is asked meanwhile is a part of this span. */
  within<Result>(run: () => Result): Result {
    if (this.#request === undefined || this.#trace === undefined) return run()
    return withinRequest({ ...this.#request, trace: this.#trace }, run)
  }

  /** The first end counts. */
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
