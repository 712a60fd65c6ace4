/** How much space the exports that have not ended will still need in each place: the spool, and the targets. */
import type { Redis } from 'ioredis'
import { askRedis } from '../redis/ask-redis.ts'

export class SpaceReservations {
  readonly #redis: Redis
  readonly #prefix: string
  readonly #live: () => Promise<readonly string[]>

  /** `live` returns the ids of all exports that have not ended. */
  constructor(redis: Redis, prefix: string, live: () => Promise<readonly string[]>) {
    this.#redis = redis
    this.#prefix = prefix
    this.#live = live
  }

  /** Bytes that exports other than `id` will still need in a place. */
  async reserved(place: string, id: string): Promise<bigint> {
    const [all, live] = await Promise.all([
      askRedis(() => this.#redis.hgetall(`${this.#prefix}:${place}`)),
      this.#live(),
    ])
    const isLive = new Set(live)
    return Object.entries(all).reduce(
      (sum, [owner, bytes]) => (owner === id || !isLive.has(owner) ? sum : sum + BigInt(bytes)),
      0n,
    )
  }

  /** Sets how much the export will still need in a place; 0: nothing. */
  async reserve(place: string, id: string, bytes: bigint): Promise<void> {
    const key = `${this.#prefix}:${place}`
    await askRedis(() =>
      bytes === 0n ? this.#redis.hdel(key, id) : this.#redis.hset(key, id, String(bytes)),
    )
  }
}
