/**
 * The jobs of exports in BullMQ: one that writes the files of an export, which waits for its children, the spans that
 * are fetched. A job says only which export it is for; all that matters is in the store and in the spool, so that a
 * job may run twice, or be lost and made again, without harm.
 */
import { type Job, Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import type { Log } from '../../shared/base/log.ts'
import type { CronRule } from '../../shared/query/cron-times.ts'
import { askRedis } from '../redis/ask-redis.ts'
import { connectRedis, type RedisTarget } from '../redis/redis-connection.ts'
import type { ExportOrder } from './export-order.ts'
import type { ExportWindow } from './export-record.ts'

/** How often a job was there when its worker died, since it last got any further. */
export interface Deaths {
  /** What BullMQ had counted. */
  readonly seen: number
  /** How far the job was. */
  readonly marker: string
  /** What they count together: one while the job waited counts less. */
  readonly count: number
  /** It does more than wait. */
  readonly isAtWork: boolean
  /** How often it ended a process that it had for itself. */
  readonly crashes: number
}

export interface WriteJob {
  readonly exportId: string
  readonly deaths?: Deaths
}

/** What a job that writes an export is for the jobs that it waits for. */
export type WritingJob = Pick<Job<WriteJob>, 'id' | 'data' | 'priority' | 'queueQualifiedName'>

export interface SpanJob extends WriteJob {
  readonly window: ExportWindow
  readonly device: string
}

/**
 * clean: removes what is left of an export. schedule: a run of a schedule is due. sweep: looks for work that was lost,
 * runs that were missed and files that nobody needs.
 */
export interface UpkeepJob {
  readonly exportId?: string
  readonly scheduleId?: string
}

export const FETCH_QUEUE = 'export-fetch'
export const WRITE_QUEUE = 'export-write'
export const UPKEEP_QUEUE = 'export-upkeep'

/** For a defect of ours; devices that fail are no concern of BullMQ. */
const ATTEMPTS = 5
const BACKOFF_MS = 1_000
/** BullMQ's largest number of a priority; 1 comes first. */
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
   * Has an export run; harmless for one that is in its queue already. `turn` is how many exports of its user were
   * waiting before it: all first ones come before all second ones, so that nobody waits behind somebody's hundred.
   */
  async start({ id }: Pick<ExportOrder, 'id'>, turn: number): Promise<void> {
    const options = { ...jobOptions(turn), jobId: id }
    await askRedis(() => this.write.add('write', { exportId: id }, options))
  }

  /** Has the spans of a window fetched, for the job that writes the export. Harmless for those that are on their way. */
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

  /** Whether the job that writes an export is there. */
  async isThere(exportId: string): Promise<boolean> {
    return (await askRedis(() => this.write.getJob(exportId))) !== undefined
  }

  /** Removes what waits of the jobs of an export; whether one of them runs still. */
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

  /** Has what is left of an export removed by a worker. */
  async clean(exportId: string): Promise<void> {
    const options = { jobId: `clean-${exportId}`, ...GONE_AT_ONCE }
    const retried = { ...options, attempts: ATTEMPTS, backoff: BACKOFF }
    await askRedis(() => this.upkeep.add('clean', { exportId }, retried))
  }

  /**
   * Has a worker look at a schedule whenever it comes round. Harmless for one that is known; what is lost here costs
   * punctuality alone.
   */
  async keepSchedule(id: string, { cron, cronZone }: CronRule): Promise<void> {
    const job = { name: 'schedule', data: { scheduleId: id }, opts: GONE_AT_ONCE }
    const rule = { pattern: cron, tz: cronZone }
    await askRedis(() => this.upkeep.upsertJobScheduler(schedulerId(id), rule, job))
  }

  /** Has one worker look for what was lost, missed or has expired. Harmless while that is ordered already. */
  async sweep(): Promise<void> {
    await askRedis(() => this.upkeep.add('sweep', {}, { jobId: 'sweep', ...GONE_AT_ONCE }))
  }

  /** Earlier versions had BullMQ order sweeps. */
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

/** A device with its place among those of the order. */
export interface SpanOf {
  readonly device: string
  readonly index: number
}

export function spanJobId(exportId: string, window: number, device: number): string {
  return `${exportId}-${window}-${device}`
}

/** Braces keep all keys on one shard of a cluster. They are no keys of the scheduler, which forgets its own. */
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
