// A Redis whose settings change while programs use it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { RedisWatch } from '../../../../src/gateway/redis/redis-watch.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { NotedChanges } from '../../../support/noted-changes.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'

const NEVER_MS = 3_600_000

async function watched(everyMs: number) {
  await using building = new AsyncDisposableStack()
  const server = building.use(await TempRedis.create())
  const admin = building.adopt(new Redis(server.url), (redis) => redis.disconnect())
  const metrics = new Metrics()
  const lines: string[] = []
  const changes = new NotedChanges()
  const note = (event: string) => {
    lines.push(event)
    changes.note()
  }
  const log = { debug: note, info: note, warn: note, error: note }
  building.use(new RedisWatch({ redis: { url: server.url }, keyPrefix: 'capfleet', log, metrics, everyMs }))
  const isUsable = async () => /redis_usable (\d)/.exec(await metrics.text())?.[1]
  const owned = building.move()
  return {
    admin,
    isUsable,
    logged: (event: string) => changes.until(() => lines.includes(event)),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

test('a policy that evicts leases is reported while the connection lasts, and so is its end', async () => {
  await using redis = await watched(50)
  await redis.admin.config('SET', 'maxmemory-policy', 'allkeys-lru')
  await redis.logged('redis.unusable')
  assert.equal(await redis.isUsable(), '0')
  await redis.admin.config('SET', 'maxmemory-policy', 'noeviction')
  await redis.logged('redis.usable')
  assert.equal(await redis.isUsable(), '1')
})

test('a policy that evicts leases is reported after a reconnection', async () => {
  await using redis = await watched(NEVER_MS)
  assert.equal(await redis.isUsable(), '1')
  await redis.admin.config('SET', 'maxmemory-policy', 'allkeys-lru')
  // The watch may not be connected yet; it checks when it is.
  await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await redis.logged('redis.unusable')
  assert.equal(await redis.isUsable(), '0')
})
