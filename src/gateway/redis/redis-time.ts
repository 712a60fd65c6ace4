import type { Redis } from 'ioredis'

/** The clock of Redis, in epoch milliseconds. Fails with the errors of Redis. */
export async function redisTimeMs(redis: Redis): Promise<number> {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1_000 + Number(micros) / 1_000
}
