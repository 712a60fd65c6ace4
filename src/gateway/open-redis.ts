/** The Redis that gateways and workers share: the configured one, which is waited for, or the gateway's private one. */
import { mkdir } from 'node:fs/promises'
import type { Log } from '../shared/base/log.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { awaitRedis } from './redis/await-redis.ts'
import type { RedisTarget } from './redis/redis-connection.ts'
import { findPrivateRedis, startPrivateRedis } from './redis/redis-server.ts'
import { readRedisTarget } from './redis/redis-settings.ts'

export interface OpenRedisContext {
  /** Secrets' files are relative to its folder. */
  readonly configPath: string
  readonly log: Log
  /** Ends the wait for a Redis that is away. */
  readonly signal: AbortSignal
}

/** The gateway's, which answers when this resolves. `owner` ends a private one. Fails with bad-config. */
export async function openGatewayRedis(
  config: GatewayConfig,
  context: OpenRedisContext,
  owner: AsyncDisposableStack,
): Promise<RedisTarget> {
  const configured = await readRedisTarget(config.redis, context.configPath)
  if (configured !== undefined) {
    await awaitRedis(configured, context)
    return configured
  }
  await mkdir(config.home, { recursive: true, mode: 0o700 })
  const server = await startPrivateRedis(config.home, context.log)
  owner.defer(() => server.close())
  const own = { url: server.socketPath }
  await awaitRedis(own, context)
  return own
}

/** A worker's, which answers when this resolves: its gateway may start at the same time. `owner` ends its address. Fails with bad-config. */
export async function openWorkerRedis(
  config: GatewayConfig,
  context: OpenRedisContext,
  owner: AsyncDisposableStack,
): Promise<RedisTarget> {
  const configured = await readRedisTarget(config.redis, context.configPath)
  const redis = configured ?? {
    url: owner.use(await findPrivateRedis(config.home, context)).socketPath,
  }
  await awaitRedis(redis, context)
  return redis
}
