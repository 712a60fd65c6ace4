import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CapfleetError } from '../../../src/base/error.ts'
import type { Log } from '../../../src/base/log.ts'
import { Secret } from '../../../src/base/secret.ts'
import { checkRedisServer, connectRedis } from '../../../src/redis/redis-connection.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'

const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

test('accepts a server that keeps every key and refuses one that may evict', async () => {
  await using server = await TempRedis.create()
  const redis = connectRedis({ url: server.url }, 'commands', SILENT)
  await checkRedisServer(redis)
  await redis.config('SET', 'maxmemory-policy', 'allkeys-lru')
  await assert.rejects(checkRedisServer(redis), (error) => {
    assert.ok(error instanceof CapfleetError)
    assert.equal(error.code, 'bad-config')
    assert.match(error.message, /allkeys-lru.*noeviction/)
    return true
  })
  redis.disconnect()
})

test('logs in with the password that was given beside the address', async () => {
  await using server = await TempRedis.create()
  const opened = connectRedis({ url: server.url }, 'commands', SILENT)
  await opened.config('SET', 'requirepass', 'secret')
  opened.disconnect()
  const redis = connectRedis({ url: server.url, password: new Secret('secret') }, 'commands', SILENT)
  await checkRedisServer(redis)
  redis.disconnect()
})

test('a server that is not there is scheduler-unavailable within seconds', async () => {
  const redis = connectRedis({ url: '/nonexistent/redis.sock' }, 'commands', SILENT)
  await assert.rejects(
    checkRedisServer(redis),
    (error) => error instanceof CapfleetError && error.code === 'scheduler-unavailable',
  )
  redis.disconnect()
})
