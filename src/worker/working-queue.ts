/** A queue from which jobs are taken, by a BullMQ worker that may be replaced by another one while jobs are running. */
import { setTimeout as delay } from 'node:timers/promises'
import {
  DelayedError,
  type Job,
  WaitingChildrenError,
  WaitingError,
  Worker,
  type WorkerOptions,
} from 'bullmq'
import { Later } from '../gateway/export/export-parts.ts'
import { CapfleetError } from '../shared/base/error.ts'
import type { Log } from '../shared/base/log.ts'
import type { SharedTime } from '../shared/base/shared-time.ts'

/** How a job's turn ends: nothing is left to do, or it continues when its children have ended. */
export type JobTurn = 'done' | 'waits-for-children'

export interface WorkingQueueOptions<Data> {
  readonly queue: string
  readonly worker: WorkerOptions & { readonly concurrency: number }
  /** Throws Later if the job should be run again without being at fault. */
  readonly run: (job: Job<Data>) => Promise<JobTurn>
  readonly clock: SharedTime
  readonly log: Log
}

const CLOSE_LIMIT_MS = 8_000
/** A delayed job may start this much too late or too early, because BullMQ delays it by the clock of this host. */
const HOST_CLOCK_ERROR_MAX_MS = 60_000

/** A job that does nothing, and shows that jobs are being taken. */
export const CANARY = 'canary'

export class WorkingQueue<Data = unknown> {
  readonly name: string
  readonly #options: WorkingQueueOptions<Data>
  #worker: Worker<Data>
  readonly #closing = new AbortController()
  #running = 0
  #tookMs = performance.now()

  /** Takes nothing before start(). */
  constructor(options: WorkingQueueOptions<Data>) {
    this.name = options.queue
    this.#options = options
    this.#worker = this.#open()
  }

  /** Number of running jobs. */
  get running(): number {
    return this.#running
  }

  /** How long it could have taken a job and took none. */
  get idleMs(): number {
    return this.#running < this.#options.worker.concurrency ? performance.now() - this.#tookMs : 0
  }

  start(): void {
    // Whatever ends it is reported by its "error" events.
    void this.#worker.run().catch(() => undefined)
  }

  /** Another BullMQ worker takes the jobs from now on; running ones end where they are. */
  replace(): void {
    const old = this.#worker
    this.#tookMs = performance.now()
    this.#worker = this.#open()
    this.start()
    void old.close().catch(() => undefined)
  }

  /** Waits for the running jobs, but not for an unreachable Redis: other workers detect what it was not told. */
  async close(): Promise<void> {
    this.#closing.abort()
    const closed = this.#worker.close().then(
      () => true,
      () => true,
    )
    const late = new AbortController()
    const isLate = delay(CLOSE_LIMIT_MS, false, { signal: late.signal }).catch(() => true)
    const isClosed = await Promise.race([closed, isLate])
    late.abort()
    // close() would wait forever, so only its connection is ended.
    if (!isClosed) void this.#worker.disconnect().catch(() => undefined)
  }

  #open(): Worker<Data> {
    const { queue, worker: options, log } = this.#options
    const worker = new Worker<Data>(queue, (job, token) => this.#process(job, token), {
      ...options,
      autorun: false,
    })
    worker.on('error', (err) => log.warn('export.worker-error', { queue, message: err.message }))
    worker.on('failed', (job, err) => log.error('export.job-failed', { queue, job: job?.id, err }))
    return worker
  }

  /** BullMQ uses the clock of this host, which may differ from the others': then the job waits here. */
  async #putOff(job: Job<Data>, token: string, delayMs: number): Promise<never> {
    if (Math.abs(Date.now() - this.#options.clock.nowMs()) <= HOST_CLOCK_ERROR_MAX_MS) {
      await job.moveToDelayed(Date.now() + delayMs, token)
      throw new DelayedError()
    }
    await delay(delayMs, undefined, { signal: this.#closing.signal }).catch(() => undefined)
    await job.moveToWait(token)
    throw new WaitingError()
  }

  async #process(job: Job<Data>, token = ''): Promise<void> {
    this.#tookMs = performance.now()
    if (job.name === CANARY) return
    this.#running += 1
    try {
      const turn = await this.#options.run(job)
      if (turn === 'done') return
      if (await job.moveToWaitingChildren(token)) throw new WaitingChildrenError()
      // They have ended meanwhile.
      throw new Later(0)
    } catch (error) {
      const delayMs = pauseAfter(error)
      if (delayMs === undefined) throw error
      return await this.#putOff(job, token, delayMs)
    } finally {
      this.#running -= 1
      this.#tookMs = performance.now()
    }
  }
}

/** How long a job waits before it is run again without being at fault; undefined: it hit an internal error. */
export function pauseAfter(error: unknown): number | undefined {
  if (error instanceof Later) return error.delayMs
  return error instanceof CapfleetError && PASSING.has(error.code) ? PASSING_PAUSE_MS : undefined
}

const PASSING: ReadonlySet<string> = new Set(['scheduler-unavailable', 'export-store-full'])
const PASSING_PAUSE_MS = 2_000
