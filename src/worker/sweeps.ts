/**
 * Lets one of all workers sweep periodically. Each checks, by a clock of its own that never steps, whether any has
 * swept since it last checked: BullMQ would store when the next sweep is due, by the clock of whichever host asks.
 */
import type { ExportJobs } from '../gateway/export/export-jobs.ts'
import type { KnownWorkers } from '../gateway/export/known-workers.ts'
import type { Log } from '../shared/base/log.ts'

export interface SweepsOptions {
  readonly workers: Pick<KnownWorkers, 'sweeps'>
  readonly jobs: Pick<ExportJobs, 'sweep' | 'dropSweepRule'>
  readonly log: Log
  readonly everyMs: number
}

export class Sweeps implements AsyncDisposable {
  readonly #options: SweepsOptions
  /** The number of sweeps at the last check. */
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

  /** Queues a sweep if there was none since the last check. Fails with scheduler-unavailable. */
  async look(): Promise<void> {
    const { workers, jobs } = this.#options
    const sweeps = await workers.sweeps()
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
