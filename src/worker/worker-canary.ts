/**
 * Verifies that a worker still takes jobs. A BullMQ worker may go silent permanently when its Redis fails over, while
 * everything looks normal. So each worker sends canaries, jobs that do nothing, into each queue; a queue that has room
 * but took nothing for long gets a new BullMQ worker.
 */
import type { Queue } from 'bullmq'
import type { KnownWorkers } from '../gateway/export/known-workers.ts'
import type { Log } from '../shared/base/log.ts'
import type { Metrics } from '../shared/base/metrics.ts'
import type { WorkerTimings } from './worker-timings.ts'
import { CANARY, type WorkingQueue } from './working-queue.ts'

export interface CanaryOptions {
  readonly workers: KnownWorkers
  readonly log: Log
  readonly metrics: Metrics
  /** The name of the worker. */
  readonly name: string
  readonly timings: Pick<WorkerTimings, 'canaryMs' | 'silentMs'>
  readonly watched: readonly WatchedQueue[]
  /** Restores what all workers depend on in Redis at each beat, because Redis may come back empty. Fails like Redis. */
  readonly restore: () => Promise<void>
}

export interface WatchedQueue {
  readonly queue: Pick<Queue, 'add'>
  readonly taken: Pick<WorkingQueue, 'name' | 'idleMs' | 'replace'>
}

export class WorkerCanary implements AsyncDisposable {
  readonly #options: CanaryOptions
  readonly #replaced: { inc(labels: { queue: string }): void }
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined

  constructor(options: CanaryOptions) {
    this.#options = options
    this.#replaced = options.metrics.counter(
      'export_worker_replacements_total',
      'Workers of an export queue that stopped responding and were replaced',
      ['queue'],
    )
  }

  async start(): Promise<void> {
    await this.#look()
    this.#timer = setInterval(() => {
      this.#sending ??= this.#look().finally(() => {
        this.#sending = undefined
      })
    }, this.#options.timings.canaryMs)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.#sending
    await this.#options.workers.leave(this.#options.name).catch(() => undefined)
  }

  async #look(): Promise<void> {
    const { workers, name, timings, watched, log, restore } = this.#options
    for (const { taken } of watched) {
      if (taken.idleMs < timings.silentMs) continue
      log.error('export.worker-silent', { queue: taken.name, idleMs: Math.round(taken.idleMs) })
      this.#replaced.inc({ queue: taken.name })
      taken.replace()
    }
    try {
      await workers.see(name, SEEN_FOR * timings.canaryMs)
      await restore()
      // At most one per worker is in a queue.
      const options = { jobId: `${CANARY}-${name}`, priority: 1, removeOnComplete: true, removeOnFail: true }
      await Promise.all(watched.map(({ queue }) => queue.add(CANARY, {}, options)))
    } catch (error) {
      log.warn('export.canary-failed', { message: (error as Error).message })
    }
  }
}

/** After this many turns without a sign of life, the worker no longer counts. */
const SEEN_FOR = 3
