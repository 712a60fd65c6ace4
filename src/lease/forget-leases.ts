import type { Redis } from 'ioredis'

/**
 * Deletes the scheduler's whole state; receipts stay. Only for a private Redis at its start: whoever
 * held leases there was a gateway that has ended, and its streams ended with it.
 */
export async function forgetLeases(redis: Redis, keyPrefix: string): Promise<void> {
  let cursor = '0'
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', `{${keyPrefix}}:*`, 'COUNT', 1_000)
    const forgotten = keys.filter((key) => !key.startsWith(`{${keyPrefix}}:req:`))
    if (forgotten.length > 0) await redis.unlink(...forgotten)
    cursor = next
  } while (cursor !== '0')
}
