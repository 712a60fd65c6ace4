/** The figures of exports that a worker keeps. */
import type { Metrics } from '../base/metrics.ts'
import type { ExportState } from './export-record.ts'

export class ExportOutcomes {
  readonly #ended: ReturnType<Metrics['counter']>
  readonly #fetched: ReturnType<Metrics['counter']>
  readonly #written: ReturnType<Metrics['counter']>
  readonly #retries: ReturnType<Metrics['counter']>
  readonly #pauses: ReturnType<Metrics['counter']>

  constructor(metrics: Metrics) {
    this.#ended = metrics.counter('exports_ended_total', 'Exports that this worker ended', ['state'])
    this.#fetched = metrics.counter('export_fetched_bytes_total', 'Bytes of spans that came from devices')
    this.#written = metrics.counter(
      'export_written_bytes_total',
      'Bytes of packets that were joined into files',
    )
    this.#retries = metrics.counter('export_device_retries_total', 'Spans for which a device is asked again')
    this.#pauses = metrics.counter('export_pauses_total', 'Turns in which an export found no space')
  }

  ended(state: ExportState): void {
    this.#ended.inc({ state })
  }

  fetched(bytes: number): void {
    this.#fetched.inc(bytes)
  }

  written(bytes: number): void {
    this.#written.inc(bytes)
  }

  retried(): void {
    this.#retries.inc()
  }

  paused(): void {
    this.#pauses.inc()
  }
}
