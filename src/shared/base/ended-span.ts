/** An ended span, and the interface of its receiver. */
import type { TraceContext } from './trace-context.ts'

export type SpanKind = 'server' | 'client' | 'internal'
export type SpanAttributes = Readonly<Record<string, string | number>>

export interface EndedSpan {
  readonly name: string
  readonly kind: SpanKind
  readonly trace: TraceContext
  /** Since 1970. */
  readonly startMs: number
  readonly endMs: number
  readonly attributes: SpanAttributes
  /** Why it failed, or undefined if it did not. */
  readonly error: string | undefined
}

/** Receives spans of traces that are recorded. It must not fail or take long. */
export interface SpanSink {
  /** Fraction of the traces starting here that are recorded, from 0 to 1. */
  readonly ratio: number
  add(span: EndedSpan): void
}
