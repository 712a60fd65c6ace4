/**
 * Has one of all workers sweep again and again. Each looks, by a clock of its own that never steps, whether any has swept
 * since it looked last: BullMQ would write down when the next sweep is due, by the clock of whatever host asks.
 */
import type { ExportJobs } from '../gateway/export/export-jobs.ts'
import type { ExportStore } from '../gateway/export/export-store.ts'
import type { Log } from '../shared/base/log.ts'

export interface SweepsOptions {
  readonly store: Pick<ExportStore, 'sweeps'>
  readonly jobs: Pick<ExportJobs, 'sweep' | 'dropSweepRule'>
  readonly log: Log
  readonly everyMs: number
}

export class Sweeps implements AsyncDisposable {
  readonly #options: SweepsOptions
  /** How often workers had swept at the last look. */
  #seen: number | undefined
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined

  constructor(options: SweepsOptions) {
    this.#options = options
  }

  /** The first sweep is due at once. Fails with scheduler-unavailable. */
  async start(): Promise<void> {
    await this.#options.jobs.dropSweepRule()
    await this.look()
    this.#timer = setInterval(() => this.#lookOnce(), this.#options.everyMs).unref()
  }

  /** Orders a sweep if there was none since the last look. Fails with scheduler-unavailable. */
  async look(): Promise<void> {
    const { store, jobs } = this.#options
    const sweeps = await store.sweeps()
    if (this.#seen === undefined || this.#seen === sweeps) await jobs.sweep()
    this.#seen = sweeps
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.#looking
  }

  #lookOnce(): void {
    this.#looking ??= this.look()
      .catch((err: unknown) => this.#options.log.warn('export.sweep-not-ordered', { err }))
      .finally(() => {
        this.#looking = undefined
      })
  }
}
