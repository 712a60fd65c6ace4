/** Schedules in Redis: what each orders, when it comes round next, and what became of its last run. */
import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'
import type { Bounds } from '../../shared/base/caller.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import type { CronRule } from '../../shared/query/cron-times.ts'
import { askRedis } from '../redis/ask-redis.ts'
import { connectRedis } from '../redis/redis-connection.ts'
import type { ReportedFailure } from './export-record.ts'
import { type ExportStoreOptions, otherOrder, type RunNote } from './export-store.ts'
import { type Idempotency, KNOWN_ORDERS, knownOrder } from './known-orders.ts'
import { EXPORT_ID } from './target/finished-file.ts'

export interface Schedule extends CronRule {
  readonly id: string
  readonly user: string
  /** Since when the name is theirs, as Caller.sinceMs: schedules of somebody who had it before do not count for them. */
  readonly userSinceMs?: number | undefined
  /** What becomes of runs that were due while no worker ran. */
  readonly missed: 'makeup' | 'skip'
  /** Of the exports, as it was given: its times count from each run, and its devices are chosen at each. */
  readonly query: string
  /** Of whoever ordered it, at that time. */
  readonly bounds: Bounds
  readonly createdMs: number
}

export interface ScheduleRecord {
  readonly schedule: Schedule
  /** The time of the run that comes next; all runs before it have been dealt with. */
  readonly nextMs: number
  /** The time of the last run that became an export. */
  readonly lastMs: number | undefined
  readonly lastExportId: string | undefined
  /** Why the last run became none. */
  readonly error: ReportedFailure | undefined
}

/** A run as it is dealt with, by one worker alone. */
export interface ScheduledRun {
  readonly scheduleId: string
  /** ScheduleRecord.nextMs as it was found: whoever comes later finds another one. */
  readonly expectedMs: number
  /** The time of the run; later than `expectedMs` where missed runs are skipped. */
  readonly nominalMs: number
  /** ScheduleRecord.nextMs from then on. */
  readonly followingMs: number
}

/** How many schedules a user may have. */
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
   * Keeps a new schedule, whose first run is at `nextMs`, and gives its id: that of an earlier one when its key has
   * come before. Fails with user-quota, idempotency-conflict or scheduler-unavailable.
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

  /** undefined: there is none. Fails with scheduler-unavailable. */
  async find(id: string): Promise<ScheduleRecord | undefined> {
    if (!EXPORT_ID.test(id)) return undefined
    return recordOf(await askRedis(() => this.#redis.hgetall(this.#keys.of(id))))
  }

  /** The schedules of a user, or of all, newest first. */
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

  /** Ids of the schedules that have a run at or before `nowMs` which nobody has dealt with. */
  due(nowMs: number): Promise<readonly string[]> {
    return askRedis(() => this.#redis.zrangebyscore(this.#keys.due, '-inf', nowMs))
  }

  /** For whoever makes an export of the run. */
  noteOf({ scheduleId, expectedMs, nominalMs, followingMs }: ScheduledRun): RunNote {
    return {
      keys: [this.#keys.of(scheduleId), this.#keys.due],
      values: [expectedMs, nominalMs, followingMs, scheduleId],
    }
  }

  /** A run became no export. It is tried again unless it `isOver`. */
  async refuse(run: ScheduledRun, error: ReportedFailure, isOver: boolean): Promise<void> {
    const { scheduleId, expectedMs, followingMs } = run
    const keys = [this.#keys.of(scheduleId), this.#keys.due]
    const values = [scheduleId, expectedMs, isOver ? followingMs : '', JSON.stringify(error)]
    await askRedis(() => (this.#redis as Scripts).refuseRun(...keys, ...values))
  }

  /** No run of the schedule becomes an export any more. */
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

/** defineCommand() cannot tell the types what it defined. */
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
