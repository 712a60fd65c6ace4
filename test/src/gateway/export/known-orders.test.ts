// The keys that identify repeated orders, in a real Redis.
import assert from 'node:assert/strict'
import { hash, randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { ScheduleStore } from '../../../../src/gateway/export/schedule-store.ts'
import { createLog } from '../../../../src/shared/base/log.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'

const SCHEDULE = {
  cron: '0 * * * *',
  cronZone: 'UTC',
  missed: 'makeup',
  query: 'TSBegin=-1h&TSEnd=now',
  bounds: { devices: [], filters: [], quotas: [] },
  createdMs: 0,
} as const

describe('keys of orders', () => {
  let redis: TempRedis
  let client: Redis
  let store: ScheduleStore

  before(async () => {
    redis = await TempRedis.create()
    client = new Redis(redis.url)
    store = new ScheduleStore({
      redis: { url: redis.url },
      keyPrefix: 'test',
      log: createLog('test', 'silent'),
    })
  })
  beforeEach(() => redis.settle('test'))
  after(async () => {
    await store[Symbol.asyncDispose]()
    client.disconnect()
    await redis[Symbol.asyncDispose]()
  })

  /** Orders a schedule and removes it, so that only its key is left. */
  const orderWith = async (user: string, key: string): Promise<string> => {
    const schedule = { ...SCHEDULE, id: randomUUID(), user }
    const id = await store.create(schedule, 0, { key, asked: 'a' })
    if (id === schedule.id) await store.remove(schedule)
    return id
  }
  const keysOf = async (user: string) => (await client.keys(`{test}:schedule:key:${user}:*`)).length

  test('of a user the newest 1,000 are known, whatever others order', async () => {
    const first = await orderWith('ann', '0')
    const second = await orderWith('ann', '1')
    for (let number = 2; number < 1_000; number += 1) await orderWith('ann', String(number))
    assert.equal(await orderWith('ann', '0'), first)
    await orderWith('bob', '0')
    assert.equal(await orderWith('ann', '0'), first)
    await orderWith('ann', '1000')
    assert.equal(await orderWith('ann', '1'), second)
    assert.equal(await keysOf('ann'), 1_000)
    assert.notEqual(await orderWith('ann', '0'), first)
    assert.equal(await keysOf('ann'), 1_000)
    assert.equal(await client.zcard('{test}:schedule:keys-of:ann'), 1_000)
    assert.equal(await client.zcard('{test}:schedule:keys'), 1_001)
  })

  test('of all users the newest 20,000 are known', async () => {
    const first = await orderWith('ann', 'first')
    const nowUs = (await client.time()).map(Number).reduce((s, us) => s * 1_000_000 + us)
    const others = Array.from({ length: 19_999 }, (_, at) => [nowUs, `{test}:schedule:key:bob:${at}`])
    await client.zadd('{test}:schedule:keys', ...others.flat())
    assert.equal(await orderWith('ann', 'first'), first)
    await orderWith('eve', 'another')
    assert.equal(await client.zcard('{test}:schedule:keys'), 20_000)
    assert.equal(await client.exists(`{test}:schedule:key:ann:${hash('sha256', 'first')}`), 0)
  })

  test('nothing of them is kept for longer than they are known', async () => {
    await orderWith('ann', 'first')
    for (const key of await client.keys('{test}:schedule:key*')) {
      const leftMs = await client.pttl(key)
      assert.ok(leftMs > 86_000_000 && leftMs <= 86_400_000, key)
    }
  })
})
