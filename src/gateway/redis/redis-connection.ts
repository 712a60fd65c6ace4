/** Connections to Redis: to one server, or to the one that Sentinels name. */
import type { ConnectionOptions } from 'node:tls'
import { Redis, type RedisOptions } from 'ioredis'
import type { ClientTls } from '../../shared/base/client-tls.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import type { Log } from '../../shared/base/log.ts'
import { outsideOfRequests } from '../../shared/base/request-context.ts'
import type { Secret } from '../../shared/base/secret.ts'
import { checkRights, isNotPermitted, lacksRights } from './redis-rights.ts'

/** Where Redis is: `url` or `sentinels`. */
export interface RedisTarget {
  /** redis://host:port/db, rediss://..., or the absolute path of a Unix socket. */
  readonly url?: string | undefined
  readonly sentinels?: SentinelGroup | undefined
  /** Default: Redis' own default user. */
  readonly user?: string | undefined
  readonly password?: Secret | undefined
  /** With Sentinels, `ca` enables TLS to them and to Redis. */
  readonly tls?: ClientTls | undefined
}

export interface SentinelGroup {
  readonly addresses: readonly { readonly host: string; readonly port: number }[]
  /** The Sentinels' name for the Redis. */
  readonly name: string
  readonly password?: Secret | undefined
}

/**
 * What a connection is used for. A blocking command holds up every later one on its connection, so these have their
 * own; they wait for Redis forever, while a request should fail soon. The same applies to those of BullMQ ("jobs"),
 * which block longer, and to messages, which may be far apart.
 */
export type RedisPurpose = 'commands' | 'blocking' | 'jobs' | 'messages'

const CONNECT_TIMEOUT_MS = 2_000
const COMMAND_TIMEOUT_MS = 3_000
const RETRY_FIRST_MS = 50
const RETRY_MOST_MS = 1_000
/**
 * A socket that is silent for this long after a command is dead, like that of a machine that lost power. Longer than
 * the inbox's BLMPOP waits, or BullMQ for a job.
 */
const SOCKET_TIMEOUTS_MS = { commands: 6_000, blocking: 10_000, jobs: 20_000, messages: undefined }

/** A connection that reconnects forever. The caller must end it with `disconnect()`. */
export function connectRedis(target: RedisTarget, purpose: RedisPurpose, log: Log): Redis {
  const options = { ...optionsFor(purpose), ...accessOptions(target) }
  // Created by the first request that needs it, but serves others, too.
  const redis = outsideOfRequests(() =>
    target.url === undefined ? new Redis(options) : new Redis(target.url, options),
  )
  redis.on('error', (err: Error) => log.warn('redis.connection-error', { purpose, message: err.message }))
  return redis
}

function optionsFor(purpose: RedisPurpose): Omit<RedisOptions, 'replyMapping'> {
  const socketTimeout = SOCKET_TIMEOUTS_MS[purpose]
  return {
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: retryAfterMs,
    // For a server that was made a replica in the meantime: the next connection finds the writable one.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
    ...(purpose === 'commands'
      ? { commandTimeout: COMMAND_TIMEOUT_MS, maxRetriesPerRequest: 2 }
      : { maxRetriesPerRequest: null }),
    ...(socketTimeout === undefined ? {} : { socketTimeout }),
  }
}

function accessOptions({ sentinels, user, password, tls }: RedisTarget): Omit<RedisOptions, 'replyMapping'> {
  const encrypted = tlsOptions(tls)
  return {
    ...(user === undefined ? {} : { username: user }),
    ...(password === undefined ? {} : { password: password.reveal() }),
    ...(encrypted === undefined ? {} : { tls: encrypted }),
    ...(sentinels === undefined ? {} : sentinelOptions(sentinels, encrypted)),
  }
}

/** Returns undefined if the address decides whether TLS is used, and Node's trust store applies. */
function tlsOptions({ ca, cert, key }: ClientTls = {}): ConnectionOptions | undefined {
  if (ca === undefined && cert === undefined) return undefined
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined || key === undefined ? {} : { cert, key: key.reveal() }),
  }
}

function sentinelOptions(
  { addresses, name, password }: SentinelGroup,
  tls: ConnectionOptions | undefined,
): Omit<RedisOptions, 'replyMapping'> {
  return {
    sentinels: addresses.map((address) => ({ ...address })),
    name,
    // A failover ends our connections, or leaves them silent. Being notified of it as well (failoverDetector) would
    // take a connection to each Sentinel for each of ours, and permanently ends connections that are just being
    // opened.
    failoverDetector: false,
    sentinelCommandTimeout: COMMAND_TIMEOUT_MS,
    sentinelRetryStrategy: retryAfterMs,
    ...(password === undefined ? {} : { sentinelPassword: password.reveal() }),
    ...(tls === undefined ? {} : { sentinelTLS: tls, enableTLSForSentinelMode: true }),
  }
}

function retryAfterMs(attempts: number): number {
  return Math.min(RETRY_FIRST_MS * 2 ** Math.min(attempts, 10), RETRY_MOST_MS)
}

/** BLMPOP, which wakes replicas, was added in 7.0. */
const VERSION_NEEDED = 7

/**
 * Fails with bad-config if the server is too old, rejects our password, does not allow our user what it needs or may
 * evict keys: a lost lease means a fifth stream on a device. Fails with scheduler-unavailable if it does not answer.
 */
export async function checkRedisServer(redis: Redis, keyPrefix: string): Promise<void> {
  const info = await readServerInfo(redis, keyPrefix)
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
      `redis: maxmemory-policy is ${policy}, so Redis may evict leases; set it to noeviction`,
      { param: 'redis.url' },
    )
  }
  await answered(() => checkRights(redis, keyPrefix))
}

/** Redis' errors for a missing password, or a wrong one. */
const REFUSAL = /^(NOAUTH|WRONGPASS)\b/

async function readServerInfo(redis: Redis, keyPrefix: string): Promise<string> {
  return await answered(async () => {
    try {
      return await redis.info()
    } catch (cause) {
      throw isNotPermitted(cause) ? lacksRights(redis, keyPrefix, cause) : cause
    }
  })
}

/** Fails with bad-config if Redis rejects our password, and with scheduler-unavailable if it does not answer. */
async function answered<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask()
  } catch (cause) {
    if (cause instanceof CapfleetError) throw cause
    const { message } = cause as Error
    if (REFUSAL.test(message)) {
      throw new CapfleetError('bad-config', `redis.password: Redis rejected the password (${message})`, {
        cause,
        param: 'redis.password',
      })
    }
    throw new CapfleetError('scheduler-unavailable', `Redis does not answer (${message}); check redis.url`, {
      cause,
      param: 'redis.url',
    })
  }
}
