import type { Metrics } from '../base/metrics.ts'

/**
 * How a download ended: whole; whole but without some devices; broken off after the first byte; left
 * by the client; or answered with an error before the first byte.
 */
export type DownloadOutcome = 'complete' | 'partial' | 'cut' | 'client-gone' | 'refused'

const WAIT_BUCKETS_S = [0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 25, 55]

export class DownloadOutcomes {
  readonly #outcomes: ReturnType<Metrics['counter']>
  readonly #bytes: ReturnType<Metrics['counter']>
  readonly #parked: ReturnType<Metrics['counter']>
  readonly #resumed: ReturnType<Metrics['counter']>
  readonly #waits: ReturnType<Metrics['histogram']>

  constructor(metrics: Metrics) {
    this.#outcomes = metrics.counter('downloads_total', 'Downloads by outcome and kind', ['outcome', 'kind'])
    this.#bytes = metrics.counter('download_bytes_total', 'Bytes sent to clients as downloads')
    this.#parked = metrics.counter('downloads_parked_total', 'Times that a slow client gave its streams back')
    this.#resumed = metrics.counter('downloads_resumed_total', 'Downloads that continued another one')
    this.#waits = metrics.histogram('lease_wait_seconds', 'Wait for a free stream', WAIT_BUCKETS_S)
  }

  ended(outcome: DownloadOutcome, kind: 'relay' | 'merge'): void {
    this.#outcomes.inc({ outcome, kind })
  }

  waited(ms: number): void {
    this.#waits.observe(ms / 1_000)
  }

  sent(bytes: number): void {
    this.#bytes.inc(bytes)
  }

  parked(): void {
    this.#parked.inc()
  }

  resumed(): void {
    this.#resumed.inc()
  }
}
