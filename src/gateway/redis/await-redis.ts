/** Waits for Redis at the start, so that a program that is started before its Redis need not exit and be restarted. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { CapfleetError } from '../../shared/base/error.ts'
import type { Log } from '../../shared/base/log.ts'
import { checkRedisServer, connectRedis, type RedisTarget } from './redis-connection.ts'

export interface AwaitRedisOptions {
  readonly keyPrefix: string
  readonly log: Log
  /** Ends the wait, with its reason. */
  readonly signal: AbortSignal
}

const ASK_EVERY_MS = 250
const LOG_EVERY_MS = 5_000
/** Startup with a slower Redis would hit some time limit: the program would exit and be restarted. */
const PROMPT_MS = 1_000

/**
 * Resolves when Redis answers promptly and can be used. Fails with bad-config like checkRedisServer, or with the
 * signal's reason.
 */
export async function awaitRedis(
  target: RedisTarget,
  { keyPrefix, log, signal }: AwaitRedisOptions,
): Promise<void> {
  let trouble = ''
  // Connection errors are logged from time to time, not each time.
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
      const answerMs = await timeToAnswer(redis, keyPrefix)
      if (answerMs <= PROMPT_MS) return
      if (answerMs < Number.POSITIVE_INFINITY) trouble = `its answers take ${Math.round(answerMs)} ms`
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

/** Returns Infinity if there is no answer. */
async function timeToAnswer(redis: Redis, keyPrefix: string): Promise<number> {
  try {
    await checkRedisServer(redis, keyPrefix)
    const startedMs = performance.now()
    await redis.ping()
    return performance.now() - startedMs
  } catch (error) {
    if (error instanceof CapfleetError && error.code !== 'scheduler-unavailable') throw error
    return Number.POSITIVE_INFINITY
  }
}
