/**
 * Exports in Redis: the authoritative state, shared by all gateways and workers. Every change is one atomic script,
 * which rejects a worker that lost its job.
 */
import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'
import { CapfleetError } from '../../shared/base/error.ts'
import type { Log } from '../../shared/base/log.ts'
import { askRedis } from '../redis/ask-redis.ts'
import { connectRedis, type RedisTarget } from '../redis/redis-connection.ts'
import type { ExportOrder } from './export-order.ts'
import {
  ENDED_STATES,
  type ExportedFile,
  type ExportRecord,
  type ExportState,
  keptCount,
  type MadeFile,
  type WholeExport,
} from './export-record.ts'
import { type Idempotency, KNOWN_ORDERS, knownOrder } from './known-orders.ts'
import { KnownWorkers } from './known-workers.ts'
import { type ExportChange, fieldsOf, listed, NO_TROUBLE, recordOf, type Trouble } from './record-fields.ts'
import { SpaceReservations } from './space-reservations.ts'
import { EXPORT_ID } from './target/finished-file.ts'

export interface ExportStoreOptions {
  readonly redis: RedisTarget
  readonly keyPrefix: string
  readonly log: Log
}

/** Records that a scheduled run has become an export, as the script stores it. */
export interface RunNote {
  readonly keys: readonly [schedule: string, due: string]
  readonly values: readonly [expectedMs: number, nominalMs: number, followingMs: number, scheduleId: string]
}

export interface ChangeOptions {
  /** The writer that the export must have. Default: any. */
  readonly writer?: string
  /** The states that the export may be in. Default: any. */
  readonly states?: readonly ExportState[]
  /** published: the finished files become those that may be read. dropped: finished files are forgotten. */
  readonly files?: 'published' | 'dropped'
}

export interface Changed {
  readonly isChanged: boolean
  /** The state now, or undefined if the export does not exist. */
  readonly state: ExportState | undefined
  /** The previous writer. */
  readonly writer: string
}

export interface PageOptions {
  /** undefined: of all users. */
  readonly user: string | undefined
  readonly after: string | undefined
  readonly limit: number
}

export interface Page {
  readonly records: readonly ExportRecord[]
  /** Where the next page begins, or undefined after the last. */
  readonly next: string | undefined
}

/** No more exports than this are created in one millisecond. */
const SAME_MS_MAX = 100
const CREATE = KNOWN_ORDERS + readFileSync(new URL('create-export.lua', import.meta.url), 'utf8')
const CHANGE = readFileSync(new URL('change-export.lua', import.meta.url), 'utf8')

export class ExportStore implements AsyncDisposable {
  readonly workers: KnownWorkers
  readonly space: SpaceReservations
  readonly #redis: Redis
  readonly #prefix: string

  constructor({ redis, keyPrefix, log }: ExportStoreOptions) {
    this.#redis = connectRedis(redis, 'commands', log)
    this.#prefix = `{${keyPrefix}}:export`
    this.workers = new KnownWorkers(this.#redis, this.#prefix)
    this.space = new SpaceReservations(this.#redis, `${this.#prefix}:space`, () => this.live())
    this.#redis.defineCommand('createExport', { lua: CREATE })
    this.#redis.defineCommand('changeExport', { numberOfKeys: 5, lua: CHANGE })
  }

  /** The channel on which the id of an export is published whenever it has changed. */
  get channel(): string {
    return `${this.#prefix}:changed`
  }

  /**
   * Stores a new order and returns its id, or that of an earlier order with the same idempotency key. Fails with
   * user-quota, idempotency-conflict or scheduler-unavailable.
   */
  async create(order: ExportOrder, perUserMax: number, idempotency?: Idempotency): Promise<string> {
    const [answer, told = ''] = await this.#create(order, perUserMax, { idempotency })
    if (answer === 'conflict') throw otherOrder('export', told)
    return answer === 'exists' ? told : order.id
  }

  /**
   * Stores the order of a run and records that the run has become an export. Returns false if the run has already been
   * dealt with or its schedule no longer exists. Fails with user-quota or scheduler-unavailable.
   */
  async createRun(order: ExportOrder, perUserMax: number, note: RunNote): Promise<boolean> {
    const [answer] = await this.#create(order, perUserMax, { note })
    return answer === 'created'
  }

  /** Returns undefined if it does not exist. Fails with scheduler-unavailable. */
  async find(id: string): Promise<ExportRecord | undefined> {
    if (!EXPORT_ID.test(id)) return undefined
    const fields = await askRedis(() => this.#redis.hgetall(this.#key(id)))
    return recordOf(fields)
  }

  /** The same with the files that may be read, which for an export of 10,000 parts takes megabytes. */
  async findWhole(id: string): Promise<WholeExport | undefined> {
    const record = await this.find(id)
    return record && { record, files: await this.keptFiles(record) }
  }

  /** The files that may be read, by number; all by default. */
  async keptFiles(record: ExportRecord, from = 0, end = keptCount(record)): Promise<readonly ExportedFile[]> {
    const last = Math.min(end, keptCount(record))
    if (record.former !== undefined) return record.former.kept.slice(from, last)
    return await this.#filesOf<ExportedFile>(this.#keptKey(record.order.id), from, last)
  }

  /** The finished files, with what the target has of them. */
  madeFiles(id: string, count: number): Promise<readonly MadeFile[]> {
    return this.#filesOf<MadeFile>(this.#madeKey(id), 0, count)
  }

  /** Applies the change atomically, if its conditions hold. Fails with scheduler-unavailable. */
  async change(
    order: Pick<ExportOrder, 'id' | 'user'>,
    change: ExportChange,
    { writer = '*', states, files }: ChangeOptions = {},
  ): Promise<Changed> {
    const { id, user } = order
    const { made, kept, ...fields } = change
    const keys = [
      this.#key(id),
      `${this.#prefix}:live:${user}`,
      `${this.#prefix}:live`,
      this.#madeKey(id),
      this.#keptKey(id),
    ]
    const allowed = states === undefined ? '*' : `,${states.join(',')},`
    const stored = [...listed(made?.files ?? []), ...listed(kept ?? [])]
    const from = files === 'published' ? (change.published ?? 0) : (made?.from ?? 0)
    const guarded = [id, writer, allowed, this.channel, turnOf(change, files), from]
    const scripts = this.#redis as Scripts
    const [isChanged, state, writerBefore = ''] = await askRedis(() =>
      scripts.changeExport(...keys, ...guarded, ...stored, ...fieldsOf(fields)),
    )
    const known = state === '' ? undefined : (state as ExportState)
    return { isChanged: Number(isChanged) === 1, state: known, writer: writerBefore }
  }

  async troubleOf(id: string, device: string): Promise<Trouble> {
    const text = await askRedis(() => this.#redis.hget(this.#key(id), `trouble:${device}`))
    return text === null ? NO_TROUBLE : (JSON.parse(text) as Trouble)
  }

  async setTrouble(id: string, device: string, trouble: Trouble): Promise<void> {
    await askRedis(() => this.#redis.hset(this.#key(id), `trouble:${device}`, JSON.stringify(trouble)))
  }

  /** A page of exports of one user or of all, newest first: at most `limit`, after the place `after`. */
  async page({ user, after, limit }: PageOptions): Promise<Page> {
    const key = user === undefined ? `${this.#prefix}:all` : `${this.#prefix}:of:${user}`
    const [, lastMs, lastId] = /^(\d+)\.(.+)$/.exec(after ?? '') ?? []
    const from = lastMs ?? '+inf'
    // Some of them may have been created in the same millisecond as the last one and precede it.
    const rows = await askRedis(() =>
      this.#redis.zrange(key, from, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, limit + SAME_MS_MAX, 'WITHSCORES'),
    )
    const places = Array.from({ length: rows.length / 2 }, (_, at) => ({
      id: rows[2 * at] ?? '',
      ms: rows[2 * at + 1] ?? '',
    })).filter(({ id, ms }) => lastId === undefined || ms !== lastMs || id < lastId)
    const taken = places.slice(0, limit)
    const records = await Promise.all(taken.map(({ id }) => this.find(id)))
    const last = taken.at(-1)
    return {
      records: records.filter((record) => record !== undefined),
      next: last === undefined || taken.length < limit ? undefined : `${last.ms}.${last.id}`,
    }
  }

  /** Ids of all exports that have not ended. */
  live(): Promise<readonly string[]> {
    return askRedis(() => this.#redis.smembers(`${this.#prefix}:live`))
  }

  /** State and order time of all exports that have not ended. */
  async liveStates(): Promise<readonly { readonly state: ExportState; readonly createdMs: number }[]> {
    const ids = await this.live()
    const [states, created] = await Promise.all([
      Promise.all(ids.map((id) => askRedis(() => this.#redis.hget(this.#key(id), 'state')))),
      ids.length === 0 ? [] : askRedis(() => this.#redis.zmscore(`${this.#prefix}:all`, ...ids)),
    ])
    return states.flatMap((state, at) =>
      // The record has expired or was removed meanwhile.
      state === null ? [] : { state: state as ExportState, createdMs: Number(created[at]) },
    )
  }

  /** How many exports of the order's user have not ended. */
  async liveOf({ user, userSinceMs = 0 }: Pick<ExportOrder, 'user' | 'userSinceMs'>): Promise<number> {
    const ids = await askRedis(() => this.#redis.smembers(`${this.#prefix}:live:${user}`))
    if (userSinceMs === 0 || ids.length === 0) return ids.length
    const created = await askRedis(() => this.#redis.zmscore(`${this.#prefix}:of:${user}`, ...ids))
    return created.filter((ms) => Number(ms) >= userSinceMs).length
  }

  /** Deletes an export. */
  async forget({ id, user }: Pick<ExportOrder, 'id' | 'user'>): Promise<void> {
    await askRedis(() =>
      this.#redis
        .multi()
        .unlink(this.#key(id), this.#madeKey(id), this.#keptKey(id))
        .zrem(`${this.#prefix}:all`, id)
        .zrem(`${this.#prefix}:of:${user}`, id)
        .srem(`${this.#prefix}:live:${user}`, id)
        .srem(`${this.#prefix}:live`, id)
        .publish(this.channel, id)
        .exec(),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#redis.disconnect()
  }

  async #create(
    order: ExportOrder,
    perUserMax: number,
    { idempotency, note }: { readonly idempotency?: Idempotency | undefined; readonly note?: RunNote },
  ): Promise<readonly string[]> {
    const { id, user, userSinceMs = 0, createdMs } = order
    const known = knownOrder(this.#prefix, user, idempotency)
    const keys = [
      this.#key(id),
      `${this.#prefix}:all`,
      `${this.#prefix}:of:${user}`,
      `${this.#prefix}:live:${user}`,
      `${this.#prefix}:live`,
      ...known.keys,
      ...(note?.keys ?? []),
    ]
    const values = [
      id,
      JSON.stringify(order),
      createdMs,
      perUserMax,
      userSinceMs,
      ...known.values,
      ...(note?.values ?? []),
    ]
    const scripts = this.#redis as Scripts
    const answer = await askRedis(() => scripts.createExport(keys.length, ...keys, ...values))
    if (answer[0] === 'quota') throw tooMany(Number(answer[1]), perUserMax)
    return answer
  }

  async #filesOf<File>(key: string, from: number, end: number): Promise<readonly File[]> {
    const numbers = Array.from({ length: Math.max(0, end - from) }, (_, at) => String(from + at))
    if (numbers.length === 0) return []
    const texts = await askRedis(() => this.#redis.hmget(key, ...numbers))
    // The record of an export may have expired meanwhile.
    return texts.flatMap((text) => (text === null ? [] : [JSON.parse(text) as File]))
  }

  #key(id: string): string {
    return `${this.#prefix}:job:${id}`
  }

  #madeKey(id: string): string {
    return `${this.#prefix}:made:${id}`
  }

  #keptKey(id: string): string {
    return `${this.#prefix}:kept:${id}`
  }
}

/** defineCommand() cannot add the types of the commands it defines. */
type Scripts = Redis & {
  createExport(keys: number, ...keysAndArguments: readonly (string | number)[]): Promise<readonly string[]>
  changeExport(...keysAndArguments: readonly (string | number)[]): Promise<readonly string[]>
}

/** Additional effect of the script. An export that is queued again counts for its user as one that has not ended. */
function turnOf({ state }: ExportChange, files: ChangeOptions['files']): string {
  if (files === 'published') return 'publishes'
  if (state !== undefined && ENDED_STATES.includes(state)) return 'ends'
  if (state === 'queued') return 'begins'
  return files === 'dropped' ? 'forgets' : ''
}

function tooMany(running: number, max: number): CapfleetError {
  return new CapfleetError(
    'user-quota',
    `you have ${running} exports that have not ended, and at most ${max} are allowed; wait for one or cancel one`,
    { retryAfterS: 60 },
  )
}

export function otherOrder(what: 'export' | 'schedule', id: string): CapfleetError {
  return new CapfleetError(
    'idempotency-conflict',
    `this Idempotency-Key was used for ${what} ${id}, which was ordered with other parameters; choose another key`,
    { members: { [`${what}Id`]: id } },
  )
}
