import type { Metrics } from '../base/metrics.ts'

/**
 * How a download ended: whole; broken off after the first byte; left by the client; or answered
 * with an error before the first byte.
 */
export type DownloadOutcome = 'complete' | 'cut' | 'client-gone' | 'refused'

const WAIT_BUCKETS_S = [0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 25, 55]

export class DownloadOutcomes {
  readonly #outcomes: ReturnType<Metrics['counter']>
  readonly #bytes: ReturnType<Metrics['counter']>
  readonly #waits: ReturnType<Metrics['histogram']>

  constructor(metrics: Metrics) {
    this.#outcomes = metrics.counter('downloads_total', 'Downloads by outcome', ['outcome'])
    this.#bytes = metrics.counter('download_bytes_total', 'Bytes sent to clients as downloads')
    this.#waits = metrics.histogram('lease_wait_seconds', 'Wait for a free stream', WAIT_BUCKETS_S)
  }

  ended(outcome: DownloadOutcome): void {
    this.#outcomes.inc({ outcome })
  }

  waited(ms: number): void {
    this.#waits.observe(ms / 1_000)
  }

  sent(bytes: number): void {
    this.#bytes.inc(bytes)
  }
}
