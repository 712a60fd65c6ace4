/** Takes jobs of exports from their queues and runs them, many at a time; any number of workers share the queues. */
import { randomUUID } from 'node:crypto'
import type { Job } from 'bullmq'
import type { Redis } from 'ioredis'
import {
  FETCH_QUEUE,
  jobPrefix,
  type SpanJob,
  UPKEEP_QUEUE,
  type UpkeepJob,
  WRITE_QUEUE,
  type WriteJob,
} from '../gateway/export/export-jobs.ts'
import { type ExportParts, Later } from '../gateway/export/export-parts.ts'
import { LIVE_STATES } from '../gateway/export/export-record.ts'
import { connectRedis, type RedisTarget } from '../gateway/redis/redis-connection.ts'
import type { Metrics } from '../shared/base/metrics.ts'
import { type IsolatedAnswer, type IsolatedRequest, writingJob } from './isolated-job.ts'
import { failExport } from './run/fail-export.ts'
import { runExport, type WriterTurn } from './run/run-export.ts'
import { type RunningJob, runSpan } from './run/run-span.ts'
import { Sweeps } from './sweeps.ts'
import { runUpkeep } from './upkeep.ts'
import { WorkerCanary } from './worker-canary.ts'
import { beginWork, isPoison, isSuspect } from './worker-deaths.ts'
import type { WorkerTimings } from './worker-timings.ts'
import { type JobTurn, pauseAfter, WorkingQueue } from './working-queue.ts'

export interface ExportWorkerOptions {
  readonly redis: RedisTarget
  readonly keyPrefix: string
  readonly metrics: Metrics
  /** Maximum number of spans that are being fetched, or wait for a stream. */
  readonly fetches: number
  /** Maximum number of exports that are being written. */
  readonly writes: number
  readonly timings: WorkerTimings
  /** Runs a job in a process of its own, like runIsolated. */
  readonly isolate: (request: IsolatedRequest, stopping: AbortSignal) => Promise<IsolatedAnswer | undefined>
}

/** BullMQ would fail a job that stalls more often; here that depends on its progress. */
const STALLED_MAX = 1_000_000

/** A process takes as much memory as a worker, and as long to start; if all workers die often, many jobs need one. */
const ISOLATED_MAX = 2
const ISOLATED_PAUSE_MS = 1_000

export class ExportWorker implements AsyncDisposable {
  readonly name = randomUUID()
  readonly #parts: ExportParts
  readonly #options: ExportWorkerOptions
  readonly #redis: Redis
  readonly #stopping = new AbortController()
  readonly #queues: readonly Pick<WorkingQueue, 'start' | 'close'>[]
  readonly #sweeps: Sweeps
  readonly #canary: WorkerCanary
  /** Number of jobs running in processes of their own. */
  #isolated = 0

  constructor(parts: ExportParts, options: ExportWorkerOptions) {
    const { log, store, jobs, spool } = parts
    const { fetches, writes, metrics, timings } = options
    this.#parts = parts
    this.#options = options
    this.#redis = connectRedis(options.redis, 'jobs', log)
    const fetch = this.#take<SpanJob>(FETCH_QUEUE, fetches, (job) => this.#runSpan(job))
    const write = this.#take<WriteJob>(WRITE_QUEUE, writes, (job) => this.#runExport(job))
    const upkeep = this.#take<UpkeepJob>(UPKEEP_QUEUE, 1, (job) => runUpkeep(parts, job))
    this.#queues = [fetch, write, upkeep]
    metrics.figures(
      'export_jobs_running',
      'Export jobs that this worker runs, by queue',
      ['queue'],
      (set) => {
        for (const { name, running } of [fetch, write, upkeep]) set(running, { queue: name })
      },
    )
    const watched = [
      { queue: jobs.fetch, taken: fetch },
      { queue: jobs.write, taken: write },
      { queue: jobs.upkeep, taken: upkeep },
    ]
    this.#sweeps = new Sweeps({ workers: store.workers, jobs, log, everyMs: timings.upkeepMs })
    const restore = async () => {
      if (!(await store.workers.shareSpool(spool.name)))
        log.error('export.spool-differs', { spool: spool.path })
    }
    this.#canary = new WorkerCanary({
      workers: store.workers,
      log,
      metrics,
      name: this.name,
      timings,
      watched,
      restore,
    })
  }

  /** Starts to take jobs. */
  async start(): Promise<void> {
    await this.#sweeps.start()
    for (const queue of this.#queues) queue.start()
    await this.#canary.start()
  }

  /** Takes no more jobs, and hands the running ones to other workers, which continue where these stop. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort(new Error('the worker is stopping'))
    await this.#sweeps[Symbol.asyncDispose]()
    await this.#canary[Symbol.asyncDispose]()
    await Promise.all(this.#queues.map((queue) => queue.close()))
    this.#redis.disconnect()
  }

  #take<Data>(
    queue: string,
    concurrency: number,
    run: (job: Job<Data>) => Promise<JobTurn>,
  ): WorkingQueue<Data> {
    const { keyPrefix, timings } = this.#options
    return new WorkingQueue<Data>({
      queue,
      worker: {
        connection: this.#redis,
        prefix: jobPrefix(keyPrefix),
        name: this.name,
        concurrency,
        lockDuration: timings.lockMs,
        stalledInterval: timings.stalledMs,
        maxStalledCount: STALLED_MAX,
        skipVersionCheck: true,
      },
      run,
      clock: this.#parts.clock,
      log: this.#parts.log,
    })
  }

  async #runSpan(job: Job<SpanJob>): Promise<JobTurn> {
    const { exportId, window, device } = job.data
    const record = await this.#parts.store.find(exportId)
    if (record === undefined || !LIVE_STATES.includes(record.state)) return 'done'
    const files = this.#parts.spool.span(exportId, window, record.order.plan.devices.indexOf(device))
    const marker = String((await files.checkpoint())?.bytes ?? 0)
    const run = () => runSpan(this.#parts, job.data, this.#running(job, marker))
    await this.#orPark(job, async () => {
      if (await isSuspect(job, marker)) await this.#isolate(job, { kind: 'span', job: job.data })
      else await run()
    })
    return 'done'
  }

  async #runExport(job: Job<WriteJob>): Promise<JobTurn> {
    const record = await this.#parts.store.find(job.data.exportId)
    const { nextIndex = 0, ordered = [], fileCount = 0, openFile = null } = record?.checkpoint ?? {}
    const begun = fileCount + (openFile === null ? 0 : 1)
    const marker = `${nextIndex}/${ordered.length}/${begun}/${record?.published ?? 0}`
    const turn = await this.#orPark(job, async () => {
      if (await isSuspect(job, marker))
        return await this.#isolate(job, { kind: 'write', job: writingJob(job) })
      return await runExport(this.#parts, job, this.#running(job, marker))
    })
    return turn === 'waits-for-spans' ? 'waits-for-children' : 'done'
  }

  #running(job: Job<WriteJob>, marker: string): RunningJob {
    const onWork = () => void beginWork(job, marker)
    return { attempt: randomUUID(), stopping: this.#stopping.signal, onWork }
  }

  /** A job that was active when workers died does no harm when isolated. */
  async #isolate(job: Job<WriteJob>, request: IsolatedRequest): Promise<WriterTurn> {
    const { exportId } = job.data
    if (this.#isolated >= ISOLATED_MAX) throw new Later(ISOLATED_PAUSE_MS)
    this.#parts.log.warn('export.job-isolated', { exportId, job: job.id })
    this.#isolated += 1
    const answer = await this.#options.isolate(request, this.#stopping.signal).finally(() => {
      this.#isolated -= 1
    })
    if (answer === undefined) {
      if (this.#stopping.signal.aborted) throw new Later(0)
      this.#parts.log.error('export.job-crashed', { exportId, job: job.id })
      this.#parts.outcomes.died()
      if (await isPoison(job)) await this.#park(job, 'it crashed the process that ran it')
      return 'done'
    }
    if ('laterMs' in answer) throw new Later(answer.laterMs)
    if ('defect' in answer) throw new Error(answer.defect)
    return answer.turn
  }

  /** Runs the job, or fails its export if it has hit an internal error for the last time. */
  async #orPark<Result>(job: Job<WriteJob>, run: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await run()
    } catch (error) {
      const isLast = job.attemptsMade + 1 >= (job.opts.attempts ?? 1)
      if (pauseAfter(error) !== undefined || !isLast) throw error
      this.#parts.log.error('export.parked', { exportId: job.data.exportId, err: error })
      return await this.#park(job, 'it hit an internal error, described in the log of the worker')
    }
  }

  async #park(job: Job<WriteJob>, why: string): Promise<undefined> {
    const record = await this.#parts.store.find(job.data.exportId)
    if (record === undefined) return
    const detail = `the export was abandoned: ${why}, repeatedly`
    await failExport(this.#parts, record, { code: 'export-parked', detail })
  }
}
