import { type CommonRedisOptions, Redis } from 'ioredis'
import { CapfleetError } from '../base/error.ts'
import type { Log } from '../base/log.ts'
import type { Secret } from '../base/secret.ts'

/** Where Redis is. */
export interface RedisTarget {
  /** redis://host:port/db, rediss://..., or the absolute path of a Unix socket. */
  readonly url: string
  readonly password?: Secret | undefined
}

/**
 * What a connection is for. A blocking command holds up every later one of its connection, so those
 * have their own; and they wait for Redis for ever, while a request would rather fail soon. So do those of BullMQ
 * ("jobs"), which block longer, and messages, which may not come for long.
 */
export type RedisPurpose = 'commands' | 'blocking' | 'jobs' | 'messages'

const CONNECT_TIMEOUT_MS = 2_000
const COMMAND_TIMEOUT_MS = 3_000
const RETRY_FIRST_MS = 50
const RETRY_MOST_MS = 1_000
/** Longer than a BLMPOP of the inbox waits, or BullMQ for a job: a silent socket is then a dead one. */
const SOCKET_TIMEOUTS_MS = { blocking: 10_000, jobs: 20_000 }

/** A connection that reconnects for ever. The caller ends it with `disconnect()`. */
export function connectRedis(target: RedisTarget, purpose: RedisPurpose, log: Log): Redis {
  const redis = new Redis(target.url, optionsFor(target, purpose))
  redis.on('error', (err: Error) => log.warn('redis.connection-error', { purpose, message: err.message }))
  return redis
}

function optionsFor(target: RedisTarget, purpose: RedisPurpose): Omit<CommonRedisOptions, 'replyMapping'> {
  return {
    ...(target.password === undefined ? {} : { password: target.password.reveal() }),
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: (attempts) => Math.min(RETRY_FIRST_MS * 2 ** Math.min(attempts, 10), RETRY_MOST_MS),
    ...(purpose === 'commands'
      ? { commandTimeout: COMMAND_TIMEOUT_MS, maxRetriesPerRequest: 2 }
      : { maxRetriesPerRequest: null }),
    ...(purpose in SOCKET_TIMEOUTS_MS
      ? { socketTimeout: SOCKET_TIMEOUTS_MS[purpose as 'blocking' | 'jobs'] }
      : {}),
  }
}

/** BLMPOP, by which replicas are woken, came with 7.0. */
const VERSION_NEEDED = 7

/**
 * Fails with bad-config when the server is too old or may throw keys away: a forgotten lease is a
 * fifth stream on a device. Fails with scheduler-unavailable when it does not answer.
 */
export async function checkRedisServer(redis: Redis): Promise<void> {
  const info = await readServerInfo(redis)
  const version = /^(?:redis|valkey)_version:(\S+)/m.exec(info)?.[1] ?? 'unknown'
  if (!(Number.parseInt(version, 10) >= VERSION_NEEDED)) {
    throw new CapfleetError('bad-config', `redis: version ${version} is too old; 7.0 or newer is needed`, {
      param: 'redis.url',
    })
  }
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'unknown'
  if (policy !== 'noeviction') {
    throw new CapfleetError(
      'bad-config',
      `redis: maxmemory-policy is ${policy}, so Redis may throw leases away; set it to noeviction`,
      { param: 'redis.url' },
    )
  }
}

async function readServerInfo(redis: Redis): Promise<string> {
  try {
    return await redis.info()
  } catch (cause) {
    throw new CapfleetError('scheduler-unavailable', 'Redis does not answer; check redis.url', {
      cause,
      param: 'redis.url',
    })
  }
}
