import type { ErrorCode } from '../../shared/base/error.ts'
import type { Metrics } from '../../shared/base/metrics.ts'

/**
 * How a download ended: complete; complete but without some devices; unverified: possibly complete; cut after the
 * first byte; left by the client; or answered with an error before the first byte.
 */
const OUTCOMES = ['complete', 'partial', 'unverified', 'cut', 'client-gone', 'refused'] as const
export type DownloadOutcome = (typeof OUTCOMES)[number]
const KINDS = ['relay', 'merge'] as const

const WAIT_BUCKETS_S = [0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 25, 55]

export class DownloadOutcomes {
  readonly #outcomes: ReturnType<Metrics['counter']>
  readonly #cuts: ReturnType<Metrics['counter']>
  readonly #bytes: ReturnType<Metrics['counter']>
  readonly #fileBytes: ReturnType<Metrics['counter']>
  readonly #parked: ReturnType<Metrics['counter']>
  readonly #resumed: ReturnType<Metrics['counter']>
  readonly #waits: ReturnType<Metrics['histogram']>

  /** `running`: number of downloads that are being opened or sent, without those waiting for streams. */
  constructor(metrics: Metrics, running: () => number) {
    this.#outcomes = metrics.counter(
      'downloads_total',
      'Downloads by outcome and kind',
      ['outcome', 'kind'],
      OUTCOMES.flatMap((outcome) => KINDS.map((kind) => ({ outcome, kind }))),
    )
    this.#cuts = metrics.counter(
      'downloads_cut_total',
      'Downloads that were cut, by error code',
      ['code'],
      [{ code: 'internal-error' }],
    )
    metrics.figures(
      'downloads_running',
      'Downloads and export files that are being opened or sent; downloads waiting for streams are not counted',
      [],
      (set) => set(Math.max(0, running())),
    )
    this.#bytes = metrics.counter('download_bytes_total', 'Bytes sent to clients as downloads')
    this.#fileBytes = metrics.counter('export_file_bytes_total', 'Bytes of export files sent to clients')
    this.#parked = metrics.counter(
      'downloads_parked_total',
      'How often streams were released because the client was too slow',
    )
    this.#resumed = metrics.counter('downloads_resumed_total', 'Downloads that continued another one')
    this.#waits = metrics.histogram('lease_wait_seconds', 'Wait for a free stream', WAIT_BUCKETS_S)
  }

  ended(outcome: DownloadOutcome, kind: (typeof KINDS)[number]): void {
    this.#outcomes.inc({ outcome, kind })
  }

  /** A download that was cut after its first byte. The caller also reports it with ended(). */
  cut(code: ErrorCode): void {
    this.#cuts.inc({ code })
  }

  waited(ms: number): void {
    this.#waits.observe(ms / 1_000)
  }

  sent(bytes: number): void {
    this.#bytes.inc(bytes)
  }

  fileSent(bytes: number): void {
    this.#fileBytes.inc(bytes)
  }

  parked(): void {
    this.#parked.inc()
  }

  resumed(): void {
    this.#resumed.inc()
  }
}
