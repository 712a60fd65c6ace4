/**
 * Sends spans to an OpenTelemetry collector, as JSON over HTTP (OTLP/HTTP). The collector may be slow or unreachable:
 * a limited number of spans is kept and retried, further ones are dropped and counted, and no request waits for any of
 * it.
 */
import type { EndedSpan, SpanKind, SpanSink } from './ended-span.ts'
import { JoinedSignal } from './joined-signal.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import { outsideOfRequests } from './request-context.ts'
import type { Secret } from './secret.ts'

export interface SpanExporterOptions {
  /** Where the collector accepts traces, such as http://collector:4318/v1/traces. */
  readonly endpoint: string
  /** Sent as a bearer token. */
  readonly token?: Secret | undefined
  readonly ratio: number
  readonly version: string
  readonly log: Log
  readonly metrics: Metrics
  /** Default: timings suitable for a remote collector. */
  readonly timings?: { readonly everyMs: number; readonly timeoutMs: number }
}

/** A span takes about 1 KiB until it is sent. */
const KEPT_MAX = 2_048
const SENT_AT_ONCE = 512
const TIMINGS = { everyMs: 2_000, timeoutMs: 10_000 }
/**
 * With these the collector asks for a retry (OTLP/HTTP, "Retryable Response Codes"), which happens on the next timer
 * tick.
 */
const LATER: ReadonlySet<number> = new Set([429, 502, 503, 504])
/** What is left when the program ends is tried once more. */
const LAST_LIMIT_MS = 2_000

export class SpanExporter implements SpanSink, AsyncDisposable {
  readonly ratio: number
  readonly #options: SpanExporterOptions
  readonly #timings: { readonly everyMs: number; readonly timeoutMs: number }
  readonly #count: (outcome: 'sent' | 'dropped', spans: number) => void
  readonly #timer: NodeJS.Timeout
  readonly #ending = new AbortController()
  #kept: EndedSpan[] = []
  #sending: Promise<void> | undefined
  #isFailing = false

  constructor(options: SpanExporterOptions) {
    this.ratio = options.ratio
    this.#options = options
    this.#timings = options.timings ?? TIMINGS
    const spans = options.metrics.counter(
      'tracing_spans_total',
      'Spans by outcome: sent to the collector of tracing.endpoint, or dropped because it was slow or unavailable',
      ['outcome'],
      [{ outcome: 'sent' }, { outcome: 'dropped' }],
    )
    this.#count = (outcome, count) => spans.inc({ outcome }, count)
    this.#timer = setInterval(() => this.#sendSoon(), this.#timings.everyMs).unref()
  }

  add(span: EndedSpan): void {
    if (this.#kept.length < KEPT_MAX) this.#kept.push(span)
    else this.#count('dropped', 1)
    if (this.#kept.length >= SENT_AT_ONCE && !this.#isFailing) this.#sendSoon()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    const late = setTimeout(() => this.#ending.abort(), LAST_LIMIT_MS)
    while (this.#kept.length > 0 && !this.#isFailing) {
      this.#sendSoon()
      await this.#sending
    }
    await this.#sending
    clearTimeout(late)
  }

  /** Sends one batch at a time. */
  #sendSoon(): void {
    if (this.#sending !== undefined || this.#kept.length === 0) return
    const spans = this.#kept.splice(0, SENT_AT_ONCE)
    // Sending is not part of the request that happens to fill a batch.
    this.#sending = outsideOfRequests(() => this.#send(spans)).finally(() => {
      this.#sending = undefined
      if (this.#kept.length >= SENT_AT_ONCE && !this.#isFailing) this.#sendSoon()
    })
  }

  async #send(spans: readonly EndedSpan[]): Promise<void> {
    const { endpoint, token, version, log } = this.#options
    using limit = new JoinedSignal([this.#ending.signal], this.#timings.timeoutMs)
    let isWorthMore = true
    try {
      const answer = await fetch(endpoint, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(token === undefined ? {} : { authorization: `Bearer ${token.reveal()}` }),
        },
        body: JSON.stringify(exportRequest(spans, version)),
        redirect: 'error',
        signal: limit.signal,
      })
      await answer.body?.cancel()
      if (!answer.ok) {
        if (!LATER.has(answer.status)) isWorthMore = false
        throw new Error(`the collector returned status ${answer.status}`)
      }
      this.#count('sent', spans.length)
      if (this.#isFailing) log.info('tracing.sent-again')
      this.#isFailing = false
    } catch (error) {
      const again = isWorthMore ? spans.slice(0, KEPT_MAX - this.#kept.length) : []
      this.#kept.unshift(...again)
      this.#count('dropped', spans.length - again.length)
      if (!this.#isFailing) log.warn('tracing.not-sent', { endpoint, err: error })
      this.#isFailing = true
    }
  }
}

/** The numbers of the protocol. */
const KINDS: Readonly<Record<SpanKind, number>> = { internal: 1, server: 2, client: 3 }
const STATUS_ERROR = 2

/** ExportTraceServiceRequest in the protocol's JSON encoding: ids as hexadecimal digits, 64-bit numbers as texts. */
function exportRequest(spans: readonly EndedSpan[], version: string): object {
  const resource = attributesOf({ 'service.name': 'capfleet-gateway', 'service.version': version })
  return {
    resourceSpans: [
      {
        resource: { attributes: resource },
        scopeSpans: [{ scope: { name: 'capfleet', version }, spans: spans.map(spanOf) }],
      },
    ],
  }
}

function spanOf({ name, kind, trace, startMs, endMs, attributes, error }: EndedSpan): object {
  return {
    traceId: trace.traceId,
    spanId: trace.spanId,
    ...(trace.parentId === undefined ? {} : { parentSpanId: trace.parentId }),
    ...(trace.state === '' ? {} : { traceState: trace.state }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanosOf(startMs),
    endTimeUnixNano: nanosOf(endMs),
    attributes: attributesOf(attributes),
    ...(error === undefined ? {} : { status: { code: STATUS_ERROR, message: error } }),
  }
}

function nanosOf(ms: number): string {
  return String(BigInt(Math.round(ms * 1_000)) * 1_000n)
}

function attributesOf(attributes: Readonly<Record<string, string | number>>): readonly object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'string' ? { stringValue: value } : { intValue: String(value) },
  }))
}
