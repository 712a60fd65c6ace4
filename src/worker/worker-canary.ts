/**
 * Proves that a worker still takes jobs. A worker of BullMQ may go silent for ever when its Redis fails over, and all
 * looks well then. So each worker sends canaries into each queue, jobs that do nothing; a queue that has room and took
 * nothing for long gets another worker.
 */
import type { Queue } from 'bullmq'
import type { ExportStore } from '../gateway/export/export-store.ts'
import type { Log } from '../shared/base/log.ts'
import type { Metrics } from '../shared/base/metrics.ts'
import type { WorkerTimings } from './worker-timings.ts'
import { CANARY, type WorkingQueue } from './working-queue.ts'

export interface CanaryOptions {
  readonly store: ExportStore
  readonly log: Log
  readonly metrics: Metrics
  /** The name of the worker. */
  readonly name: string
  readonly timings: Pick<WorkerTimings, 'canaryMs' | 'silentMs'>
  readonly watched: readonly WatchedQueue[]
  /** Puts what all workers rely on into Redis again at each beat, because Redis may come back empty. Fails as Redis does. */
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
    await this.#options.store.leaveWorker(this.#options.name).catch(() => undefined)
  }

  async #look(): Promise<void> {
    const { store, name, timings, watched, log, restore } = this.#options
    for (const { taken } of watched) {
      if (taken.idleMs < timings.silentMs) continue
      log.error('export.worker-silent', { queue: taken.name, idleMs: Math.round(taken.idleMs) })
      this.#replaced.inc({ queue: taken.name })
      taken.replace()
    }
    try {
      await store.seeWorker(name, SEEN_FOR * timings.canaryMs)
      await restore()
      // One of each worker at most is in a queue.
      const options = { jobId: `${CANARY}-${name}`, priority: 1, removeOnComplete: true, removeOnFail: true }
      await Promise.all(watched.map(({ queue }) => queue.add(CANARY, {}, options)))
    } catch (error) {
      log.warn('export.canary-failed', { message: (error as Error).message })
    }
  }
}

/** So many turns without a word, and nobody counts on the worker any more. */
const SEEN_FOR = 3
