/** A span that has ended, and who takes it. */
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
  /** Why it failed; undefined: it did not. */
  readonly error: string | undefined
}

/** Takes spans of traces that are recorded. It must not fail, nor take long. */
export interface SpanSink {
  /** How many of the traces that begin here are recorded, from 0 to 1. */
  readonly ratio: number
  add(span: EndedSpan): void
}
