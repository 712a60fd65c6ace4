/**
 * Receipts in Redis. A download never fails and never waits because of one: what Redis does not
 * take now is kept here and written when it is back.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { CapfleetError } from '../base/error.ts'
import type { Log } from '../base/log.ts'
import { connectRedis, type RedisTarget } from '../lease/redis-connection.ts'
import type { StoredReceipt } from './receipt.ts'

export interface ReceiptStoreOptions {
  readonly redis: RedisTarget
  readonly keyPrefix: string
  readonly log: Log
  /** How often the receipt of a running download is brought up to date; default 10 s. */
  readonly refreshMs?: number
}

/** A download that runs: its receipt as of now. */
export type ReceiptSource = () => StoredReceipt

const KEPT_S = 86_400
const REFRESH_MS = 10_000
/** A download that ends sooner is written once. */
const FIRST_MS = 100
/** A running download whose receipt was not brought up to date for so many turns has lost its gateway. */
const LOST_AFTER_TURNS = 3.5
const PENDING_MAX = 10_000
const WRITTEN_AT_ONCE = 100
const RETRY_MS = 1_000
/** At the end of the process. */
const CLOSE_LIMIT_MS = 3_000

export class ReceiptStore implements AsyncDisposable {
  readonly #options: ReceiptStoreOptions
  readonly #redis: Redis
  readonly #running = new Map<string, ReceiptSource>()
  /** Ids of downloads that have begun since #first was set. */
  readonly #begun: string[] = []
  #first: NodeJS.Timeout | undefined
  /** Receipts that Redis has not taken yet, oldest first. */
  readonly #pending = new Map<string, StoredReceipt>()
  readonly #refresh: NodeJS.Timeout
  readonly #closing = new AbortController()
  #writing: Promise<void> | undefined

  constructor(options: ReceiptStoreOptions) {
    this.#options = options
    this.#redis = connectRedis(options.redis, 'commands', options.log)
    this.#refresh = setInterval(() => this.#saveRunning(), this.#refreshMs)
    this.#refresh.unref()
  }

  /** Receipts that wait for Redis. */
  get pending(): number {
    return this.#pending.size
  }

  /**
   * Keeps the receipt of a running download up to date, for other gateways from a moment after its
   * begin on, until save() is called with its end.
   */
  watch(id: string, source: ReceiptSource): void {
    this.#running.set(id, source)
    this.#begun.push(id)
    this.#first ??= setTimeout(() => this.#saveBegun(), FIRST_MS).unref()
  }

  /** The last word on a download. */
  save(receipt: StoredReceipt): void {
    this.#running.delete(receipt.id)
    this.#enqueue(receipt)
  }

  /**
   * The receipt, undefined when there is none. One whose gateway died while the download ran is told
   * as failed. Fails with scheduler-unavailable when Redis does not answer.
   */
  async find(id: string): Promise<StoredReceipt | undefined> {
    const own = this.#running.get(id)?.() ?? this.#pending.get(id)
    if (own !== undefined) return own
    const key = this.#key(id)
    try {
      const [text, leftS] = await Promise.all([this.#redis.get(key), this.#redis.pttl(key)])
      if (text === null) return undefined
      const receipt = JSON.parse(text) as StoredReceipt
      const ageMs = KEPT_S * 1_000 - leftS
      const lost = receipt.status === 'streaming' && ageMs > LOST_AFTER_TURNS * this.#refreshMs
      return lost ? { ...receipt, ...REPLICA_LOST } : receipt
    } catch (cause) {
      throw new CapfleetError(
        'scheduler-unavailable',
        'receipts are in Redis, which cannot be reached now; ask again',
        { retryAfterS: 5, cause },
      )
    }
  }

  /** Writes what it can, for a short time. */
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
    this.#pending.delete(receipt.id)
    this.#pending.set(receipt.id, receipt)
    const [oldest] = this.#pending.keys()
    if (this.#pending.size > PENDING_MAX && oldest !== undefined) {
      this.#pending.delete(oldest)
      this.#options.log.error('receipt.lost', { requestId: oldest })
    }
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined
    })
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

  /** All in one write, but each by itself; returns what one of them met. */
  async #put(batch: readonly StoredReceipt[]): Promise<Error | undefined> {
    const commands = this.#redis.pipeline()
    for (const receipt of batch) commands.set(this.#key(receipt.id), JSON.stringify(receipt), 'EX', KEPT_S)
    const results = (await commands.exec()) ?? []
    for (const [index, receipt] of batch.entries()) {
      const isWritten = results[index]?.[0] === null
      // A newer state may have come meanwhile; it is written next.
      if (isWritten && this.#pending.get(receipt.id) === receipt) this.#pending.delete(receipt.id)
    }
    return results.find(([error]) => error !== null)?.[0] ?? undefined
  }
}

const REPLICA_LOST = {
  status: 'failed',
  error: { code: 'replica-lost', detail: 'the gateway that served this download ended before it' },
} as const
