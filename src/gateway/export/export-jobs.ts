/**
 * The BullMQ jobs of exports: one writes the files of an export and waits for its children, which fetch spans. A job
 * only names its export; all that matters is in the store and in the spool, so that a job may run twice, or be lost
 * and recreated, without harm.
 */
import { type Job, Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import type { Log } from '../../shared/base/log.ts'
import type { CronRule } from '../../shared/query/time/cron-times.ts'
import { askRedis } from '../redis/ask-redis.ts'
import { connectRedis, type RedisTarget } from '../redis/redis-connection.ts'
import type { ExportOrder } from './export-order.ts'
import type { ExportWindow } from './export-record.ts'

/** How often the job was active when its worker died, since the job last made progress. */
export interface Deaths {
  /** BullMQ's count when it was last read. */
  readonly seen: number
  /** How far the job had got. */
  readonly marker: string
  /** The weighted sum of these deaths; one that occurred while the job was waiting counts less. */
  readonly count: number
  /** Whether it is doing more than waiting. */
  readonly isAtWork: boolean
  /** How often it ended a process in which no other job was running. */
  readonly crashes: number
}

export interface WriteJob {
  readonly exportId: string
  readonly deaths?: Deaths
}

/** What the jobs it waits for need from a job that writes an export. */
export type WritingJob = Pick<Job<WriteJob>, 'id' | 'data' | 'priority' | 'queueQualifiedName'>

export interface SpanJob extends WriteJob {
  readonly window: ExportWindow
  readonly device: string
}

/**
 * clean: removes what is left of an export. schedule: a run of a schedule is due. sweep: looks for lost work, missed
 * runs and files that are no longer needed.
 */
export interface UpkeepJob {
  readonly exportId?: string
  readonly scheduleId?: string
}

export const FETCH_QUEUE = 'export-fetch'
export const WRITE_QUEUE = 'export-write'
export const UPKEEP_QUEUE = 'export-upkeep'

/** Only for bugs of ours; failing devices are not handled by BullMQ. */
const ATTEMPTS = 5
const BACKOFF_MS = 1_000
/** BullMQ's largest priority number; 1 comes first. */
const PRIORITY_MAX = 2_097_152

export interface ExportJobsOptions {
  readonly redis: RedisTarget
  readonly keyPrefix: string
  readonly log: Log
}

export class ExportJobs implements AsyncDisposable {
  readonly #redis: Redis
  readonly write: Queue<WriteJob>
  readonly fetch: Queue<SpanJob>
  readonly upkeep: Queue<UpkeepJob>

  constructor({ redis, keyPrefix, log }: ExportJobsOptions) {
    this.#redis = connectRedis(redis, 'commands', log)
    const options = { connection: this.#redis, prefix: jobPrefix(keyPrefix), skipVersionCheck: true }
    this.write = new Queue<WriteJob>(WRITE_QUEUE, options)
    this.fetch = new Queue<SpanJob>(FETCH_QUEUE, options)
    this.upkeep = new Queue<UpkeepJob>(UPKEEP_QUEUE, options)
    for (const queue of [this.write, this.fetch, this.upkeep])
      queue.on('error', (err) => log.warn('export.queue-error', { queue: queue.name, message: err.message }))
  }

  /**
   * Queues an export. Does nothing if it is queued already. `turn` is its position among the unfinished exports of its
   * user, starting at 1, and becomes its priority: the first export of every user runs before the second of any user,
   * so a user who orders a hundred exports does not hold up the others.
   */
  async start({ id }: Pick<ExportOrder, 'id'>, turn: number): Promise<void> {
    const options = { ...jobOptions(turn), jobId: id }
    await askRedis(() => this.write.add('write', { exportId: id }, options))
  }

  /**
   * Queues the spans of a window for the job that writes the export. Harmless for spans that are already queued or
   * running.
   */
  async fetchWindow(parent: WritingJob, window: ExportWindow, devices: readonly SpanOf[]): Promise<void> {
    const { exportId } = parent.data
    const spans = devices.map(({ device, index }) => ({
      name: 'span',
      data: { exportId, window, device },
      opts: {
        ...jobOptions(parent.priority),
        jobId: spanJobId(exportId, window.index, index),
        parent: { id: parent.id ?? '', queue: parent.queueQualifiedName },
        ignoreDependencyOnFailure: true,
      },
    }))
    await askRedis(() => this.fetch.addBulk(spans))
  }

  /** Whether the job that writes an export exists. */
  async isThere(exportId: string): Promise<boolean> {
    return (await askRedis(() => this.write.getJob(exportId))) !== undefined
  }

  /** Removes the waiting jobs of an export; returns whether one of them is still running. */
  async removeJobs(exportId: string, spans: readonly string[]): Promise<boolean> {
    let isRunning = false
    const jobs = [...spans.map((id) => [this.fetch, id] as const), [this.write, exportId] as const]
    for (const [queue, id] of jobs) {
      const job = await askRedis<Job | undefined>(() => queue.getJob(id))
      if (job === undefined) continue
      const isRemoved = await job.remove().then(
        () => true,
        () => false,
      )
      if (!isRemoved) isRunning = true
    }
    return isRunning
  }

  /** Queues the removal of what is left of an export. */
  async clean(exportId: string): Promise<void> {
    const options = { jobId: `clean-${exportId}`, ...GONE_AT_ONCE }
    const retried = { ...options, attempts: ATTEMPTS, backoff: BACKOFF }
    await askRedis(() => this.upkeep.add('clean', { exportId }, retried))
  }

  /**
   * Queues a check of a schedule each time it is due. Harmless if it is registered already; losing this only delays
   * runs.
   */
  async keepSchedule(id: string, { cron, cronZone }: CronRule): Promise<void> {
    const job = { name: 'schedule', data: { scheduleId: id }, opts: GONE_AT_ONCE }
    const rule = { pattern: cron, tz: cronZone }
    await askRedis(() => this.upkeep.upsertJobScheduler(schedulerId(id), rule, job))
  }

  /** Queues a search for lost, missed and expired work. Harmless if one is queued already. */
  async sweep(): Promise<void> {
    await askRedis(() => this.upkeep.add('sweep', {}, { jobId: 'sweep', ...GONE_AT_ONCE }))
  }

  /** Earlier versions had BullMQ schedule the sweeps. */
  async dropSweepRule(): Promise<void> {
    await askRedis(() => this.upkeep.removeJobScheduler('sweep'))
  }

  async dropSchedule(id: string): Promise<void> {
    await askRedis(() => this.upkeep.removeJobScheduler(schedulerId(id)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      [this.write, this.fetch, this.upkeep].map((queue) => queue.close().catch(() => undefined)),
    )
    this.#redis.disconnect()
  }
}

/** A device with its position among those of the order. */
export interface SpanOf {
  readonly device: string
  readonly index: number
}

export function spanJobId(exportId: string, window: number, device: number): string {
  return `${exportId}-${window}-${device}`
}

/**
 * Braces keep all keys on one shard of a cluster. The prefix differs from the scheduler's, which removes its own keys.
 */
export function jobPrefix(keyPrefix: string): string {
  return `{${keyPrefix}:jobs}`
}

function schedulerId(scheduleId: string): string {
  return `schedule-${scheduleId}`
}

const GONE_AT_ONCE = { removeOnComplete: true, removeOnFail: true }
const BACKOFF = { type: 'exponential', delay: BACKOFF_MS }

function jobOptions(turn: number) {
  const priority = Math.min(PRIORITY_MAX, Math.max(1, turn))
  return { priority, attempts: ATTEMPTS, backoff: BACKOFF, ...GONE_AT_ONCE }
}
