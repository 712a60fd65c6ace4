/** What the workers of all machines agree on, in Redis: which of them run, their spool, and how often they have swept. */
import type { Redis } from 'ioredis'
import { askRedis } from '../redis/ask-redis.ts'
import { redisTimeMs } from '../redis/redis-time.ts'

/** Uses the connection of its owner, which ends it. All calls fail with scheduler-unavailable. */
export class KnownWorkers {
  readonly #redis: Redis
  readonly #prefix: string

  constructor(redis: Redis, prefix: string) {
    this.#redis = redis
    this.#prefix = prefix
  }

  /** Registers a worker as running; it must be called again within `forMs`. */
  async see(name: string, forMs: number): Promise<void> {
    const key = `${this.#prefix}:workers`
    await askRedis(async () => {
      const nowMs = await redisTimeMs(this.#redis)
      await this.#redis
        .multi()
        .zadd(key, nowMs + forMs, name)
        .zremrangebyscore(key, 0, nowMs)
        .exec()
    })
  }

  async leave(name: string): Promise<void> {
    await askRedis(() => this.#redis.zrem(`${this.#prefix}:workers`, name))
  }

  /** Number of running workers. */
  count(): Promise<number> {
    return askRedis(async () =>
      this.#redis.zcount(`${this.#prefix}:workers`, await redisTimeMs(this.#redis), '+inf'),
    )
  }

  /**
   * Whether all workers use this spool. A worker with another spool would search for spans that are not there. The
   * first worker decides, and again whenever no worker is running any more.
   */
  async shareSpool(spool: string): Promise<boolean> {
    const key = `${this.#prefix}:spool`
    if ((await this.count()) === 0) await askRedis(() => this.#redis.del(key))
    await askRedis(() => this.#redis.set(key, spool, 'NX'))
    return (await askRedis(() => this.#redis.get(key))) === spool
  }

  /** How often workers have swept. */
  async sweeps(): Promise<number> {
    return Number(await askRedis(() => this.#redis.get(`${this.#prefix}:sweeps`)))
  }

  async countSweep(): Promise<void> {
    await askRedis(() => this.#redis.incr(`${this.#prefix}:sweeps`))
  }
}
