// A replica that was paused for longer than its lease and resumes: a real process, a real Redis.
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { eventually } from '../../../support/eventually.ts'
import { AwaitedList } from '../../../support/lease/awaited-list.ts'
import type { LeaseProgramSettings } from '../../../support/lease/lease-program.ts'
import {
  askLease,
  giveBack,
  LEASE_PREFIX,
  lapse,
  QUICK_TIMINGS,
  startScheduler,
  untilUse,
} from '../../../support/lease/lease-user.ts'
import { pause } from '../../../support/pause.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'

const PROGRAM = new URL('../../../support/lease/lease-program.ts', import.meta.url)

test('a grant that a paused replica did not see waits again, because the device only reports how many are streaming', async (t) => {
  await using redis = await TempRedis.create()
  await redis.settle(LEASE_PREFIX)
  const client = new Redis(redis.url)
  t.after(() => client.disconnect())
  const streaming = new Set<string>()
  const streamsPerDevice = 2
  const other = await startScheduler(redis, { streamsPerDevice, readersOf: async () => streaming.size })
  t.after(() => other.close())
  // However long the pause takes here, waiting requests outlast it.
  const timings = { ...QUICK_TIMINGS, leaseTtlMs: 5_000, unavailableMs: 600_000 }
  const settings: LeaseProgramSettings = { url: redis.url, replica: 'paused', streamsPerDevice, timings }
  const paused = fork(PROGRAM, [JSON.stringify(settings)])
  t.after(() => paused.kill('SIGKILL'))
  const granted = new AwaitedList<string>()
  paused.on('message', (id: string) => {
    streaming.add(id)
    granted.push(id)
  })
  const stateOf = async (id: string) => (await other.places([id]))[0]?.state

  paused.send('first')
  await granted.until(({ length }) => length === 1)
  const neighbour = await askLease(other, ['a'])
  neighbour.opened()
  paused.send('second')
  await untilUse(redis, other, { device: 'a', used: 2, waiting: 1 })
  paused.kill('SIGSTOP')
  const isPaused = async () => / T /.test(await readFile(`/proc/${paused.pid}/stat`, 'utf8'))
  await eventually(isPaused, { message: 'the replica is paused' })
  // Redis waits for the test, however late the machine is.
  await client.zadd(`{${LEASE_PREFIX}}:hb`, 'XX', Date.now() + 600_000, 'paused')
  await giveBack(neighbour)
  const [, attempt] = ((await client.hget(`{${LEASE_PREFIX}}:r`, 'second')) ?? '').split(' ')
  assert.equal(await stateOf('second'), 'streaming')
  await pause(timings.leaseTtlMs, 'the replica stands still for longer than its lease')
  await lapse(redis, 'paused')

  // One of the two streams of the silent replica is released; it is not known which one is running.
  const third = await askLease(other, ['a'], { id: 'third' })
  streaming.add('third')
  third.opened()
  assert.equal(await stateOf('second'), 'suspect')
  paused.kill('SIGCONT')
  await redis.until(async () => (await stateOf('second')) !== 'suspect')
  assert.equal(await stateOf('second'), 'waiting')

  // The grant comes late, after the replica knows that it expired.
  await client.rpush(`{${LEASE_PREFIX}}:in:paused`, `${attempt} second`)
  const leaseEnd = () => client.zscore(`{${LEASE_PREFIX}}:hb`, 'paused')
  for (let beats = 0; beats < 2; beats += 1) {
    const end = await leaseEnd()
    await redis.until(async () => (await leaseEnd()) !== end)
  }
  assert.equal(await client.llen(`{${LEASE_PREFIX}}:in:paused`), 0)
  assert.deepEqual(granted.items, ['first'])

  streaming.delete('third')
  await giveBack(third)
  await granted.until(({ length }) => length === 2)
  assert.deepEqual(granted.items, ['first', 'second'])
  paused.send('first')
  paused.send('second')
  await untilUse(redis, other, { device: 'a', used: 0 })
  paused.disconnect()
  await once(paused, 'exit')
  await other.close()
  assert.deepEqual(await redis.leftovers(LEASE_PREFIX), [])
})
