/** A program may start before its Redis does: it waits, instead of ending and being started again and again. */
import { setTimeout as delay } from 'node:timers/promises'
import { CapfleetError } from '../base/error.ts'
import type { Log } from '../base/log.ts'
import { checkRedisServer, connectRedis, type RedisTarget } from './redis-connection.ts'

export interface AwaitRedisOptions {
  readonly log: Log
  /** Ends the wait, with its reason. */
  readonly signal: AbortSignal
}

const ASK_EVERY_MS = 250
const LOG_EVERY_MS = 5_000

/** Resolves when Redis answers and can be used. Fails with bad-config as checkRedisServer does, or with the signal's reason. */
export async function awaitRedis(target: RedisTarget, { log, signal }: AwaitRedisOptions): Promise<void> {
  let trouble = ''
  // What the connection meets is told once in a while, not each time.
  const note = (_event: string, fields: Readonly<Record<string, unknown>> = {}) => {
    trouble = String(fields.message)
  }
  const quiet: Log = { debug: note, info: note, warn: note, error: note }
  const redis = connectRedis(target, 'commands', quiet)
  const startedMs = performance.now()
  let loggedMs = Number.NEGATIVE_INFINITY
  try {
    for (;;) {
      signal.throwIfAborted()
      if (await answers(redis)) return
      const nowMs = performance.now()
      if (nowMs - loggedMs > LOG_EVERY_MS) {
        loggedMs = nowMs
        log.warn('redis.awaited', { waitedS: Math.round((nowMs - startedMs) / 1_000), message: trouble })
      }
      await delay(ASK_EVERY_MS, undefined, { signal })
    }
  } finally {
    redis.disconnect()
  }
}

async function answers(redis: Parameters<typeof checkRedisServer>[0]): Promise<boolean> {
  try {
    await checkRedisServer(redis)
    return true
  } catch (error) {
    if (error instanceof CapfleetError && error.code === 'scheduler-unavailable') return false
    throw error
  }
}
