/** Checks periodically that Redis can still be used: its settings, and the server itself, may change at run time. */
import type { Redis } from 'ioredis'
import { CapfleetError } from '../../shared/base/error.ts'
import type { Log } from '../../shared/base/log.ts'
import type { Metrics } from '../../shared/base/metrics.ts'
import { checkRedisServer, connectRedis, type RedisTarget } from './redis-connection.ts'

export interface RedisWatchOptions {
  readonly redis: RedisTarget
  readonly keyPrefix: string
  readonly log: Log
  readonly metrics: Metrics
  /** Default: a minute. */
  readonly everyMs?: number
}

const EVERY_MS = 60_000

export class RedisWatch implements AsyncDisposable {
  readonly #log: Log
  readonly #redis: Redis
  readonly #keyPrefix: string
  readonly #timer: NodeJS.Timeout
  #checking: Promise<void> | undefined
  /** Whether something may have changed since the last check began. */
  #isOutdated = false
  #isUsable = true

  /** Checks at each connection and every `everyMs`, until disposed. */
  constructor({ redis, keyPrefix, log, metrics, everyMs = EVERY_MS }: RedisWatchOptions) {
    this.#log = log
    this.#keyPrefix = keyPrefix
    this.#redis = connectRedis(redis, 'commands', log)
    metrics.gauge(
      'redis_usable',
      'Whether Redis has the version and the maxmemory-policy that leases need, and allows what the gateway does, as of the last check',
      [],
      (gauge) => gauge.set(Number(this.#isUsable)),
    )
    this.#redis.on('ready', () => this.#check())
    this.#timer = setInterval(() => this.#check(), everyMs)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#redis.disconnect()
    await this.#checking
  }

  #check(): void {
    this.#isOutdated = true
    this.#checking ??= this.#askUntilCurrent().finally(() => {
      this.#checking = undefined
    })
  }

  /** A check that was running when the connection was made again may have asked its questions before. */
  async #askUntilCurrent(): Promise<void> {
    while (this.#isOutdated) {
      this.#isOutdated = false
      await this.#ask()
    }
  }

  async #ask(): Promise<void> {
    try {
      await checkRedisServer(this.#redis, this.#keyPrefix)
      if (!this.#isUsable) this.#log.info('redis.usable')
      this.#isUsable = true
    } catch (error) {
      // An unreachable Redis is reported by the leases.
      if (!(error instanceof CapfleetError) || error.code !== 'bad-config') return
      // Logged each time: until it is fixed, Redis may lose leases at any moment.
      this.#log.error('redis.unusable', { message: error.message })
      this.#isUsable = false
    }
  }
}
