import { addAbortListener } from 'node:events'
import type { Redis } from 'ioredis'
import type { Log } from '../../shared/base/log.ts'

const WAIT_S = 5
const BATCH = 256
const RETRY_MS = 200

/**
 * Reads the replica's list of messages until `signal` aborts, and calls `onMessage` for each. The list is durable:
 * messages sent while the connection is down are read afterwards. Uses a connection of its own, and ends it.
 */
export async function readLeaseInbox(
  redis: Redis,
  key: string,
  onMessage: (message: string) => void,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  const end = new Promise<void>((resolve) => addAbortListener(signal, () => resolve()))
  // Away from Redis, a command waits for ever, also after disconnect().
  await Promise.race([readOn(redis, key, onMessage, log, signal), end])
  redis.disconnect()
}

async function readOn(
  ...[redis, key, onMessage, log, signal]: Parameters<typeof readLeaseInbox>
): Promise<void> {
  while (!signal.aborted) {
    try {
      const batch = await redis.blmpop(WAIT_S, 1, key, 'LEFT', 'COUNT', BATCH)
      for (const message of batch?.[1] ?? []) onMessage(message)
    } catch (error) {
      if (signal.aborted) return
      log.debug('lease.inbox-error', { message: (error as Error).message })
      // The connection object reconnects on its own; this only keeps a permanent error from spinning.
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
}
