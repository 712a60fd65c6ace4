/** Schedules in Redis: what each orders, when it is due next, and the outcome of its last run. */
import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'
import type { Bounds } from '../../shared/base/caller.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import type { CronRule } from '../../shared/query/time/cron-times.ts'
import { askRedis } from '../redis/ask-redis.ts'
import { connectRedis } from '../redis/redis-connection.ts'
import type { ReportedFailure } from './export-record.ts'
import { type ExportStoreOptions, otherOrder, type RunNote } from './export-store.ts'
import { type Idempotency, KNOWN_ORDERS, knownOrder } from './known-orders.ts'
import { EXPORT_ID } from './target/finished-file.ts'

export interface Schedule extends CronRule {
  readonly id: string
  readonly user: string
  /**
   * Since when the name belongs to this user, as in Caller.sinceMs: schedules of an earlier user of the name do not
   * count for them.
   */
  readonly userSinceMs?: number | undefined
  /** What happens to runs that were due while no worker ran. */
  readonly missed: 'makeup' | 'skip'
  /** Query of the exports, as given: times are relative to each run, and devices are selected at each run. */
  readonly query: string
  /** Bounds of the user who ordered it, at that time. */
  readonly bounds: Bounds
  readonly createdMs: number
}

export interface ScheduleRecord {
  readonly schedule: Schedule
  /** Time of the next run; all earlier runs have been dealt with. */
  readonly nextMs: number
  /** Time of the last run that became an export. */
  readonly lastMs: number | undefined
  readonly lastExportId: string | undefined
  /** Why the last run did not become an export. */
  readonly error: ReportedFailure | undefined
}

/** A run that is being dealt with, by exactly one worker. */
export interface ScheduledRun {
  readonly scheduleId: string
  /** ScheduleRecord.nextMs as it was read: another worker that comes later finds a different value. */
  readonly expectedMs: number
  /** The time of the run; later than `expectedMs` if missed runs are skipped. */
  readonly nominalMs: number
  /** The new ScheduleRecord.nextMs. */
  readonly followingMs: number
}

/** Maximum number of schedules per user. */
const PER_USER_MAX = 100
const CREATE = KNOWN_ORDERS + readFileSync(new URL('create-schedule.lua', import.meta.url), 'utf8')
const REFUSE = readFileSync(new URL('refuse-run.lua', import.meta.url), 'utf8')

export class ScheduleStore implements AsyncDisposable {
  readonly #redis: Redis
  readonly #keys: ScheduleKeys

  constructor({ redis, keyPrefix, log }: ExportStoreOptions) {
    this.#redis = connectRedis(redis, 'commands', log)
    this.#keys = scheduleKeys(keyPrefix)
    this.#redis.defineCommand('createSchedule', { numberOfKeys: 6, lua: CREATE })
    this.#redis.defineCommand('refuseRun', { numberOfKeys: 2, lua: REFUSE })
  }

  /**
   * Stores a new schedule whose first run is at `nextMs`, and returns its id, or that of an earlier one with the same
   * idempotency key. Fails with user-quota, idempotency-conflict or scheduler-unavailable.
   */
  async create(schedule: Schedule, nextMs: number, idempotency?: Idempotency): Promise<string> {
    const { id, user, userSinceMs = 0 } = schedule
    const { prefix, of, due, ofUser } = this.#keys
    const known = knownOrder(prefix, user, idempotency)
    const keys = [of(id), due, ofUser(user), ...known.keys]
    const values = [id, JSON.stringify(schedule), nextMs, PER_USER_MAX, userSinceMs, ...known.values]
    const [answer, told = ''] = await askRedis(() =>
      (this.#redis as Scripts).createSchedule(...keys, ...values),
    )
    if (answer === 'quota') throw tooMany(Number(told))
    if (answer === 'conflict') throw otherOrder('schedule', told)
    return answer === 'exists' ? told : id
  }

  /** Returns undefined if it does not exist. Fails with scheduler-unavailable. */
  async find(id: string): Promise<ScheduleRecord | undefined> {
    if (!EXPORT_ID.test(id)) return undefined
    return recordOf(await askRedis(() => this.#redis.hgetall(this.#keys.of(id))))
  }

  /** The schedules of one user or of all, newest first. */
  async list(user: string | undefined): Promise<readonly ScheduleRecord[]> {
    const { due, ofUser } = this.#keys
    const ids = await askRedis(() =>
      user === undefined
        ? this.#redis.zrangebyscore(due, '-inf', '+inf')
        : this.#redis.smembers(ofUser(user)),
    )
    const records = await Promise.all(ids.map((id) => this.find(id)))
    return records
      .filter((record) => record !== undefined)
      .sort((a, b) => b.schedule.createdMs - a.schedule.createdMs)
  }

  /** Ids of the schedules with an unhandled run at or before `nowMs`. */
  due(nowMs: number): Promise<readonly string[]> {
    return askRedis(() => this.#redis.zrangebyscore(this.#keys.due, '-inf', nowMs))
  }

  /** The note to store with the export that the run becomes. */
  noteOf({ scheduleId, expectedMs, nominalMs, followingMs }: ScheduledRun): RunNote {
    return {
      keys: [this.#keys.of(scheduleId), this.#keys.due],
      values: [expectedMs, nominalMs, followingMs, scheduleId],
    }
  }

  /** Records that a run did not become an export. It is retried unless it `isOver`. */
  async refuse(run: ScheduledRun, error: ReportedFailure, isOver: boolean): Promise<void> {
    const { scheduleId, expectedMs, followingMs } = run
    const keys = [this.#keys.of(scheduleId), this.#keys.due]
    const values = [scheduleId, expectedMs, isOver ? followingMs : '', JSON.stringify(error)]
    await askRedis(() => (this.#redis as Scripts).refuseRun(...keys, ...values))
  }

  /** Removes the schedule; no further run becomes an export. */
  async remove({ id, user }: Schedule): Promise<void> {
    const { of, due, ofUser } = this.#keys
    await askRedis(() => this.#redis.multi().unlink(of(id)).zrem(due, id).srem(ofUser(user), id).exec())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#redis.disconnect()
  }
}

interface ScheduleKeys {
  readonly prefix: string
  readonly due: string
  of(id: string): string
  ofUser(user: string): string
}

function scheduleKeys(keyPrefix: string): ScheduleKeys {
  const prefix = `{${keyPrefix}}:schedule`
  return {
    prefix,
    due: `${prefix}:due`,
    of: (id) => `${prefix}:is:${id}`,
    ofUser: (user) => `${prefix}:of:${user}`,
  }
}

/** defineCommand() cannot add the types of the commands it defines. */
type Scripts = Redis & {
  createSchedule(...keysAndArguments: readonly (string | number)[]): Promise<readonly string[]>
  refuseRun(...keysAndArguments: readonly (string | number)[]): Promise<number>
}

function recordOf(fields: Readonly<Record<string, string>>): ScheduleRecord | undefined {
  const { schedule, nextMs, lastMs, lastExportId, error } = fields
  if (schedule === undefined) return undefined
  return {
    schedule: JSON.parse(schedule) as Schedule,
    nextMs: Number(nextMs),
    lastMs: lastMs === undefined ? undefined : Number(lastMs),
    lastExportId,
    error: error === undefined ? undefined : (JSON.parse(error) as ReportedFailure),
  }
}

function tooMany(kept: number): CapfleetError {
  return new CapfleetError(
    'user-quota',
    `you have ${kept} schedules, and at most ${PER_USER_MAX} are allowed; remove one`,
  )
}
