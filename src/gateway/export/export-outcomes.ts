/** A worker's metrics about exports. */
import type { Metrics } from '../../shared/base/metrics.ts'
import { ENDED_STATES, type ExportState } from './export-record.ts'

export class ExportOutcomes {
  readonly #ended: ReturnType<Metrics['counter']>
  readonly #fetched: ReturnType<Metrics['counter']>
  readonly #written: ReturnType<Metrics['counter']>
  readonly #retries: ReturnType<Metrics['counter']>
  readonly #pauses: ReturnType<Metrics['counter']>
  readonly #spans: ReturnType<Metrics['counter']>
  readonly #deaths: ReturnType<Metrics['counter']>

  constructor(metrics: Metrics) {
    this.#ended = metrics.counter(
      'exports_ended_total',
      'Exports that this worker ended, by state',
      ['state'],
      ENDED_STATES.map((state) => ({ state })),
    )
    this.#fetched = metrics.counter('export_fetched_bytes_total', 'Bytes of spans received from devices')
    this.#written = metrics.counter('export_written_bytes_total', 'Bytes of packets written to files')
    this.#retries = metrics.counter(
      'export_device_retries_total',
      'Spans that were requested from a device again',
    )
    this.#pauses = metrics.counter(
      'export_pauses_total',
      'How often an export paused: no space, or a target or an audit that could not be reached',
    )
    this.#spans = metrics.counter(
      'export_spans_total',
      'Spans by outcome: fetched, or missing because the device could not deliver them',
      ['outcome'],
      [{ outcome: 'fetched' }, { outcome: 'missing' }],
    )
    this.#deaths = metrics.counter(
      'export_job_deaths_total',
      'Processes that crashed while running a single isolated job that had crashed workers before',
    )
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

  span(outcome: 'fetched' | 'missing'): void {
    this.#spans.inc({ outcome })
  }

  died(): void {
    this.#deaths.inc()
  }
}
