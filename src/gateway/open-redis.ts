/** The Redis shared by gateways and workers: the configured one, for which this waits, or the gateway's private one. */
import { mkdir } from 'node:fs/promises'
import type { Log } from '../shared/base/log.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { awaitRedis } from './redis/await-redis.ts'
import type { RedisTarget } from './redis/redis-connection.ts'
import { findPrivateRedis, startPrivateRedis } from './redis/redis-server.ts'
import { readRedisTarget } from './redis/redis-settings.ts'

export interface OpenRedisContext {
  /** Relative paths of secret files are resolved against its folder. */
  readonly configPath: string
  readonly log: Log
  /** Ends the wait for an unreachable Redis. */
  readonly signal: AbortSignal
}

/**
 * The gateway's Redis, which answers when this resolves. A private one ends when `owner` is disposed. Fails with
 * bad-config.
 */
export async function openGatewayRedis(
  config: GatewayConfig,
  context: OpenRedisContext,
  owner: AsyncDisposableStack,
): Promise<RedisTarget> {
  const configured = await readRedisTarget(config.redis, context.configPath)
  if (configured !== undefined) {
    await awaitRedis(configured, awaiting(config, context))
    return configured
  }
  await mkdir(config.home, { recursive: true, mode: 0o700 })
  const server = await startPrivateRedis(config.home, context.log)
  owner.defer(() => server.close())
  const own = { url: server.socketPath }
  await awaitRedis(own, awaiting(config, context))
  return own
}

/**
 * A worker's Redis, which answers when this resolves: its gateway may start at the same time. Its address ends when
 * `owner` is disposed. Fails with bad-config.
 */
export async function openWorkerRedis(
  config: GatewayConfig,
  context: OpenRedisContext,
  owner: AsyncDisposableStack,
): Promise<RedisTarget> {
  const configured = await readRedisTarget(config.redis, context.configPath)
  const redis = configured ?? {
    url: owner.use(await findPrivateRedis(config.home, context)).socketPath,
  }
  await awaitRedis(redis, awaiting(config, context))
  return redis
}

function awaiting({ redis: { keyPrefix } }: GatewayConfig, { log, signal }: OpenRedisContext) {
  return { keyPrefix, log, signal }
}
