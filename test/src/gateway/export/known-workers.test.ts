// What all workers agree on, in a real Redis.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { KnownWorkers } from '../../../../src/gateway/export/known-workers.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'

async function setUp() {
  const parts = new AsyncDisposableStack()
  const redis = parts.use(await TempRedis.create())
  const client = new Redis(redis.url)
  parts.defer(() => client.disconnect())
  const workers = new KnownWorkers(client, 'test')
  return { workers, [Symbol.asyncDispose]: () => parts.disposeAsync() }
}

test('workers are counted while they register again in time', async () => {
  await using stand = await setUp()
  const { workers } = stand
  await workers.see('a', 60_000)
  await workers.see('b', -1)
  assert.equal(await workers.count(), 1)
  await workers.leave('a')
  assert.equal(await workers.count(), 0)
})

test('the first worker decides on the spool, and again when none is running', async () => {
  await using stand = await setUp()
  const { workers } = stand
  assert.equal(await workers.shareSpool('one'), true)
  await workers.see('a', 60_000)
  assert.equal(await workers.shareSpool('other'), false)
  await workers.leave('a')
  assert.equal(await workers.shareSpool('other'), true)
})

test('sweeps are counted', async () => {
  await using stand = await setUp()
  assert.equal(await stand.workers.sweeps(), 0)
  await stand.workers.countSweep()
  assert.equal(await stand.workers.sweeps(), 1)
})
