/**
 * Receipts in Redis. A download never fails or waits because of one: what Redis cannot accept now is kept here and
 * written when it is back.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { ChainableCommander, Redis } from 'ioredis'
import { CapfleetError } from '../../shared/base/error.ts'
import type { Log } from '../../shared/base/log.ts'
import { connectRedis, type RedisTarget } from '../redis/redis-connection.ts'
import type { StoredReceipt } from './receipt.ts'

export interface ReceiptStoreOptions {
  readonly redis: RedisTarget
  readonly keyPrefix: string
  readonly log: Log
  /** How many receipts are kept per user, the newest ones. */
  readonly perUserMax: number
  /** How often the receipt of a running download is updated. Default: 10 s. */
  readonly refreshMs?: number
}

/** Returns the receipt of a running download as of now. */
export type ReceiptSource = () => StoredReceipt

const KEPT_S = 86_400
const REFRESH_MS = 10_000
/** A download that ends sooner is written only once. */
const FIRST_MS = 100
/** If the receipt of a running download has missed this many updates, its gateway has died. */
const LOST_AFTER_TURNS = 3.5
/** Maximum size of what waits for Redis, in UTF-16 units of JSON: thousands of receipts with short filters. */
const PENDING_CHARS_MAX = 16 * 1_048_576
const WRITTEN_AT_ONCE = 100
/** Some receipts have a filter of many kilobytes, and parsing must not block other requests. */
const READ_AT_ONCE = 50
const RETRY_MS = 1_000
/** Time limit of close(), at the end of the process. */
const CLOSE_LIMIT_MS = 3_000

const KEEP_SCRIPT = readFileSync(new URL('keep-receipt.lua', import.meta.url), 'utf8')

/** A receipt to be written. */
interface PendingReceipt {
  readonly id: string
  readonly user: string
  readonly json: string
}

export class ReceiptStore implements AsyncDisposable {
  readonly #options: ReceiptStoreOptions
  readonly #redis: Redis
  readonly #running = new Map<string, ReceiptSource>()
  /** Ids of downloads that have begun since #first was set. */
  readonly #begun: string[] = []
  #first: NodeJS.Timeout | undefined
  /** Receipts that Redis has not accepted yet, oldest first. */
  readonly #pending = new Map<string, PendingReceipt>()
  /** Size of the JSON of all pending receipts, in UTF-16 units. */
  #pendingChars = 0
  readonly #refresh: NodeJS.Timeout
  readonly #closing = new AbortController()
  #writing: Promise<void> | undefined

  constructor(options: ReceiptStoreOptions) {
    this.#options = options
    this.#redis = connectRedis(options.redis, 'commands', options.log)
    this.#redis.defineCommand('keepReceipt', { numberOfKeys: 2, lua: KEEP_SCRIPT })
    this.#refresh = setInterval(() => this.#saveRunning(), this.#refreshMs)
    this.#refresh.unref()
  }

  /** Number of receipts waiting for Redis. */
  get pending(): number {
    return this.#pending.size
  }

  /**
   * Keeps the receipt of a running download up to date until save() stores the final one. Other gateways see it shortly
   * after the download has begun.
   */
  watch(id: string, source: ReceiptSource): void {
    this.#running.set(id, source)
    this.#begun.push(id)
    this.#first ??= setTimeout(() => this.#saveBegun(), FIRST_MS).unref()
  }

  /** Stores the final receipt of a download. */
  save(receipt: StoredReceipt): void {
    this.#running.delete(receipt.id)
    this.#enqueue(receipt)
  }

  /**
   * The receipt, or undefined if it does not exist. If its gateway died while the download was running, it is reported
   * as failed. Fails with scheduler-unavailable if Redis does not answer.
   */
  async find(id: string): Promise<StoredReceipt | undefined> {
    const running = this.#running.get(id)
    if (running !== undefined) return running()
    const pending = this.#pending.get(id)
    if (pending !== undefined) return JSON.parse(pending.json) as StoredReceipt
    const key = this.#key(id)
    try {
      const [text, leftS] = await Promise.all([this.#redis.get(key), this.#redis.pttl(key)])
      if (text === null) return undefined
      const receipt = JSON.parse(text) as StoredReceipt
      const ageMs = KEPT_S * 1_000 - leftS
      const lost = receipt.status === 'streaming' && ageMs > LOST_AFTER_TURNS * this.#refreshMs
      return lost ? { ...receipt, ...REPLICA_LOST } : receipt
    } catch (cause) {
      throw unreachable(cause)
    }
  }

  /**
   * The receipts of these ids, as far as they exist; of a running download as of its last update. Fails with
   * scheduler-unavailable if Redis does not answer.
   */
  async findAll(ids: readonly string[]): Promise<ReadonlyMap<string, StoredReceipt>> {
    const found = new Map<string, StoredReceipt>()
    for (let from = 0; from < ids.length; from += READ_AT_ONCE)
      for (const receipt of await this.#findSome(ids.slice(from, from + READ_AT_ONCE)))
        found.set(receipt.id, receipt)
    return found
  }

  async #findSome(ids: readonly string[]): Promise<readonly StoredReceipt[]> {
    const here = ids.flatMap((id) => this.#running.get(id)?.() ?? [])
    const others = ids.filter((id) => !this.#running.has(id)).map((id) => this.#key(id))
    if (others.length === 0) return here
    try {
      const texts = await this.#redis.mget(others)
      return [...here, ...texts.flatMap((text) => (text === null ? [] : (JSON.parse(text) as StoredReceipt)))]
    } catch (cause) {
      throw unreachable(cause)
    }
  }

  /** The newest receipts of a user, newest first. Fails with scheduler-unavailable if Redis does not answer. */
  async list(user: string, most: number): Promise<readonly StoredReceipt[]> {
    const running = [...this.#running.values()].map((source) => source())
    const here = [...running, ...this.#pending.values()]
      .filter((one) => one.user === user)
      .map(({ id }) => id)
    const ids = new Set([...here, ...(await this.#idsOf(user, most))])
    const found = await Promise.all([...ids].map((id) => this.find(id)))
    const receipts = found.filter((receipt) => receipt !== undefined)
    return receipts.sort((a, b) => (a.startedAt < b.startedAt ? 1 : -1)).slice(0, most)
  }

  async #idsOf(user: string, most: number): Promise<readonly string[]> {
    try {
      return await this.#redis.zrevrange(this.#listKey(user), 0, most - 1)
    } catch (cause) {
      throw unreachable(cause)
    }
  }

  /** Writes what it can, for a limited time. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#refresh)
    clearTimeout(this.#first)
    this.#saveBegun()
    const late = setTimeout(() => this.#closing.abort(), CLOSE_LIMIT_MS)
    await this.#writing
    clearTimeout(late)
    this.#closing.abort()
    if (this.#pending.size > 0) this.#options.log.error('receipt.lost', { receipts: this.#pending.size })
    this.#redis.disconnect()
  }

  get #refreshMs(): number {
    return this.#options.refreshMs ?? REFRESH_MS
  }

  #key(id: string): string {
    return `{${this.#options.keyPrefix}}:req:${id}`
  }

  /** Ids of the user's receipts, by time. */
  #listKey(user: string): string {
    return `{${this.#options.keyPrefix}}:req:of:${user}`
  }

  #saveBegun(): void {
    this.#first = undefined
    for (const id of this.#begun.splice(0)) {
      const source = this.#running.get(id)
      if (source !== undefined) this.#enqueue(source())
    }
  }

  #saveRunning(): void {
    for (const source of this.#running.values()) this.#enqueue(source())
  }

  #enqueue(receipt: StoredReceipt): void {
    if (this.#closing.signal.aborted) {
      this.#options.log.error('receipt.lost', { requestId: receipt.id })
      return
    }
    const { id, user } = receipt
    this.#forget(id)
    const json = JSON.stringify(receipt)
    this.#pending.set(id, { id, user, json })
    this.#pendingChars += json.length
    while (this.#pendingChars > PENDING_CHARS_MAX) {
      const [oldest = ''] = this.#pending.keys()
      this.#forget(oldest)
      this.#options.log.error('receipt.lost', { requestId: oldest })
    }
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined
    })
  }

  /** Removes a receipt from those waiting for Redis. */
  #forget(id: string): void {
    this.#pendingChars -= this.#pending.get(id)?.json.length ?? 0
    this.#pending.delete(id)
  }

  async #write(): Promise<void> {
    let failures = 0
    while (this.#pending.size > 0 && !this.#closing.signal.aborted) {
      const batch = [...this.#pending.values()].slice(0, WRITTEN_AT_ONCE)
      const failure = await this.#put(batch)
      if (failure === undefined) continue
      if (failures === 0)
        this.#options.log.warn('receipt.delayed', { receipts: this.#pending.size, err: failure })
      failures += 1
      await delay(RETRY_MS, undefined, { signal: this.#closing.signal }).catch(() => undefined)
    }
  }

  /** All in one write, but independent of each other; returns one of the failures, if any. */
  async #put(batch: readonly PendingReceipt[]): Promise<Error | undefined> {
    const commands = this.#redis.pipeline() as KeepReceipt
    for (const { id, user, json } of batch) {
      const keys = [this.#key(id), this.#listKey(user)]
      commands.keepReceipt(...keys, id, json, KEPT_S, this.#options.perUserMax, this.#key(''))
    }
    const results = (await commands.exec()) ?? []
    for (const [index, receipt] of batch.entries()) {
      const isWritten = results[index]?.[0] === null
      // A newer state may have arrived meanwhile; it is written next.
      if (isWritten && this.#pending.get(receipt.id) === receipt) this.#forget(receipt.id)
    }
    return results.find(([error]) => error !== null)?.[0] ?? undefined
  }
}

/** defineCommand() cannot add the type of the command it defines. */
type KeepReceipt = ChainableCommander & {
  keepReceipt(...keysAndArguments: readonly (string | number)[]): unknown
}

function unreachable(cause: unknown): CapfleetError {
  return new CapfleetError(
    'scheduler-unavailable',
    'receipts are in Redis, which cannot be reached now; ask again',
    { retryAfterS: 5, cause },
  )
}

const REPLICA_LOST = {
  status: 'failed',
  error: {
    code: 'replica-lost',
    detail: 'the gateway that served this download stopped before the download ended',
  },
} as const
