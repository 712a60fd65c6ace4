// Replicas that die or pause, devices that are busy or count their readers, and a Redis that comes back.
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { type CommonRedisOptions, Redis } from 'ioredis'
import type { Lease, QueuePlace } from '../../../../src/gateway/lease/lease.ts'
import {
  type LeaseScheduler,
  type LeaseSchedulerOptions,
  SOLE_REPLICA,
} from '../../../../src/gateway/lease/lease-scheduler.ts'
import { LeaseScripts } from '../../../../src/gateway/lease/lease-scripts.ts'
import { AwaitedList } from '../../../support/lease/awaited-list.ts'
import {
  askLease,
  giveBack,
  LEASE_PREFIX,
  lapse,
  liftLimit,
  PATIENT_TIMINGS,
  QUICK_TIMINGS,
  SILENT_LOG,
  startScheduler,
  untilUse,
} from '../../../support/lease/lease-user.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'

describe('leases over failures', () => {
  let redis: TempRedis
  before(async () => {
    redis = await TempRedis.create()
  })
  after(() => redis?.[Symbol.asyncDispose]())
  beforeEach(() => redis.settle(LEASE_PREFIX))
  const running = new Set<LeaseScheduler>()
  const clients: Redis[] = []
  // Left over from a failed test.
  afterEach(async () => {
    for (const client of clients.splice(0)) client.disconnect()
    const left = [...running]
    running.clear()
    await Promise.all(left.map((scheduler) => scheduler.close()))
  })

  async function start(options: Partial<LeaseSchedulerOptions> = {}): Promise<LeaseScheduler> {
    const scheduler = await startScheduler(redis, options)
    running.add(scheduler)
    return scheduler
  }

  async function close(...schedulers: readonly LeaseScheduler[]): Promise<void> {
    for (const scheduler of schedulers) {
      running.delete(scheduler)
      await scheduler.close()
    }
    assert.deepEqual(await redis.leftovers(LEASE_PREFIX), [])
  }

  /** The test's own connection. */
  function connect(options: Pick<CommonRedisOptions, 'maxRetriesPerRequest'> = {}): Redis {
    const client = new Redis(redis.url, options)
    clients.push(client)
    return client
  }

  /** A replica that takes `ids` on device a and then goes silent. */
  async function die(ids: readonly string[], replica = 'dead'): Promise<void> {
    const client = connect()
    const context = { redis: client, keyPrefix: LEASE_PREFIX, replica, streamsPerDevice: 4 }
    const dead = new LeaseScripts({ ...context, timings: PATIENT_TIMINGS })
    await dead.heartbeat()
    for (const id of ids)
      await dead.enqueue({ id, devices: ['a'], class: 'interactive', user: 'tester', attempt: 0 })
    await lapse(redis, replica)
  }

  const four = (scheduler: LeaseScheduler, device = 'a') =>
    Promise.all([1, 2, 3, 4].map(() => askLease(scheduler, [device])))

  test('a busy device: the lease waits at its old place with the limit lowered, and starts when it is lifted', async () => {
    const scheduler = await start({ timings: PATIENT_TIMINGS })
    const [first, ...others] = (await four(scheduler)) as [Lease, Lease, Lease, Lease]
    const order: string[] = []
    const second = askLease(scheduler, ['a']).then((lease) => {
      order.push('newcomer')
      return lease
    })
    await untilUse(redis, scheduler, { device: 'a', waiting: 1 })
    const client = connect()
    const [seconds = 0] = await client.time()
    const again = first
      .requeue('a', { signal: new AbortController().signal, waitMs: 600_000 })
      .then(() => order.push('first'))
    await untilUse(redis, scheduler, { device: 'a', used: 3, waiting: 2 })
    const liftedMs = Number(await client.zscore(`{${LEASE_PREFIX}}:restore`, 'a'))
    assert.ok(liftedMs >= seconds * 1_000 + PATIENT_TIMINGS.busyMs)
    await liftLimit(redis, 'a')
    await again
    assert.deepEqual(order, ['first'])
    await giveBack(first)
    await giveBack(await second, ...others)
    await close(scheduler)
  })

  test('a lease that waits again for too long is given back', async () => {
    const scheduler = await start()
    const lease = await askLease(scheduler, ['a'])
    const waits = lease.requeue('a', { signal: new AbortController().signal, waitMs: 30 })
    // The whole requested wait, not what was left of it.
    await assert.rejects(waits, {
      code: 'queue-timeout',
      message: /^no download slot became free on a within 30 s; /,
    })
    // The lowered limit is lifted.
    await redis.until(async () => (await redis.leftovers(LEASE_PREFIX)).length === 0)
    await close(scheduler)
  })

  test('ends also while Redis is unreachable', async () => {
    await using other = await TempRedis.create()
    const isAway = Promise.withResolvers<void>()
    let failures = 0
    const warn = (_event: string, { purpose }: { readonly purpose?: unknown } = {}) => {
      if (purpose === 'blocking') failures += 1
      // It retries only after a second, and its command waits for that.
      if (failures === 6) setImmediate(() => setImmediate(isAway.resolve))
    }
    const scheduler = await startScheduler(other, { log: { ...SILENT_LOG, warn } })
    const lease = await askLease(scheduler, ['a'])
    await other.stop('SIGKILL')
    await isAway.promise
    await scheduler.close()
    assert.ok(lease.lost.aborted)
  })

  test('of a dead replica as many streams stay in use as its device counts readers that are not ours', async () => {
    let readers = 4
    const asked = new AwaitedList<string>()
    const readersOf = async (device: string) => {
      asked.push(device)
      return readers
    }
    const scheduler = await start({ readersOf })
    const mine = await askLease(scheduler, ['a'])
    mine.opened()
    await die(['d1', 'd2', 'd3', 'd4'])
    const next = askLease(scheduler, ['a'])
    const count = asked.items.length
    await untilUse(redis, scheduler, { device: 'a', used: 4, waiting: 1 })
    await asked.until(({ length }) => length >= count + 3)
    assert.equal((await scheduler.use(['a']))[0]?.used, 4)
    // One of them has ended: whichever it was, one stream is free.
    readers = 3
    const nextLease = await next
    assert.equal((await scheduler.use(['a']))[0]?.used, 4)
    readers = 1
    await untilUse(redis, scheduler, { device: 'a', used: 2 })
    await giveBack(nextLease, mine)
    await close(scheduler)
  })

  test('a grant whose stream may not have begun does not account for a reader', async () => {
    const scheduler = await start({ readersOf: async () => 1 })
    const mine = await askLease(scheduler, ['a'])
    await die(['d1'])
    const client = connect()
    // The one reader may be the dead replica's.
    await redis.until(async () => (await client.zcard(`{${LEASE_PREFIX}}:sus:a`)) > 0)
    const asked = await client.zscore(`{${LEASE_PREFIX}}:susd`, 'a')
    await redis.until(async () => (await client.zscore(`{${LEASE_PREFIX}}:susd`, 'a')) !== asked)
    assert.equal((await scheduler.use(['a']))[0]?.used, 2)
    mine.opened()
    await untilUse(redis, scheduler, { device: 'a', used: 1 })
    await giveBack(mine)
    await close(scheduler)
  })

  test('a device that does not answer keeps the streams of a dead replica', async () => {
    let answers = false
    const readersOf = async () => {
      if (!answers) throw new Error('no answer')
      return 0
    }
    const timings = { ...QUICK_TIMINGS, suspectMs: 100 }
    const scheduler = await start({ readersOf, timings })
    await die(['d1'])
    const client = connect()
    await redis.until(async () => (await client.zcard(`{${LEASE_PREFIX}}:sus:a`)) > 0)
    const asked = Number(await client.zscore(`{${LEASE_PREFIX}}:susd`, 'a'))
    await redis.until(async () => Number(await client.zscore(`{${LEASE_PREFIX}}:susd`, 'a')) >= asked + 300)
    assert.equal((await scheduler.use(['a']))[0]?.used, 1)
    answers = true
    await untilUse(redis, scheduler, { device: 'a', used: 0 })
    await close(scheduler)
  })

  test('Redis unreachable for long: streams on devices that count continue, those on others are cut', async () => {
    const readersOf = async (device: string) => {
      if (device === 'mute') throw new Error('nobody answers')
      return device === 'counts' ? 1 : undefined
    }
    const scheduler = await start({ readersOf, timings: { ...QUICK_TIMINGS, fenceMs: 1_000 } })
    const [counted, mute, silent] = [
      await askLease(scheduler, ['counts']),
      await askLease(scheduler, ['counts', 'mute']),
      await askLease(scheduler, ['counts', 'silent']),
    ]
    const cut = new Promise<void>((resolve) => silent.lost.addEventListener('abort', () => resolve()))
    await redis.stop('SIGKILL')
    await cut
    assert.ok(!counted.lost.aborted)
    assert.ok(!mute.lost.aborted, 'a device that does not answer now can tell later')
    await redis.start()
    await untilUse(redis, scheduler, { device: 'counts', used: 3 })
    await giveBack(counted, mute, silent)
    await close(scheduler)
  })

  test('a grant that comes after a pause longer than the lease is not taken: its stream may be another’s by then', async (t) => {
    const other = await start({ timings: { ...QUICK_TIMINGS, fenceMs: Number.POSITIVE_INFINITY } })
    const held = await four(other)
    const { leaseTtlMs } = PATIENT_TIMINGS
    const paused = await start({
      timings: { ...PATIENT_TIMINGS, heartbeatMs: 2 * leaseTtlMs },
      replica: 'paused',
    })
    let isGranted = false
    const id = 'late'
    const late = askLease(paused, ['a'], { id })
    void late.then(() => (isGranted = true))
    await untilUse(redis, other, { device: 'a', waiting: 1 })
    await lapse(redis, 'paused')
    // No replica reports it any more, so its place is released.
    await untilUse(redis, other, { device: 'a', waiting: 0 })
    const now = performance.now.bind(performance)
    t.mock.method(performance, 'now', () => now() + leaseTtlMs)
    const client = connect()
    await client.rpush(`{${LEASE_PREFIX}}:in:paused`, `1 ${id}`)
    // It asks whose stream this is, and reports that it waits.
    await untilUse(redis, other, { device: 'a', used: 4, waiting: 1 })
    assert.ok(!isGranted)
    await giveBack(held[0] as Lease)
    await giveBack(await late, ...held)
    await close(paused, other)
  })

  test('Redis loses all: streams count again, waiters keep their order, newcomers come after them', async () => {
    const schedulers = [await start(), await start()] as const
    const held = await four(schedulers[0])
    const order: number[] = []
    const waiting = [0, 1, 2, 3].map(async (index) => {
      const lease = await askLease(schedulers[index % 2 === 0 ? 0 : 1], ['a'])
      order.push(index)
      await giveBack(lease)
    })
    await untilUse(redis, schedulers[0], { device: 'a', waiting: 4 })
    const client = connect()
    await client.flushall()
    await untilUse(redis, schedulers[0], { device: 'a', used: 4, waiting: 4 })
    const last = askLease(schedulers[1], ['a']).then(async (lease) => {
      order.push(4)
      await giveBack(lease)
    })
    await untilUse(redis, schedulers[0], { device: 'a', waiting: 5 })
    await giveBack(held[0] as Lease)
    await Promise.all([...waiting, last])
    assert.deepEqual(order.indexOf(4), 4)
    assert.deepEqual(order.filter((index) => index % 2 === 0).slice(0, 2), [0, 2])
    await giveBack(...held)
    await close(...schedulers)
  })

  test('nothing is granted after a restart until all had time to report; alone, at once', async () => {
    const timings = { ...QUICK_TIMINGS, leaseTtlMs: 1_500 }
    const client = connect({ maxRetriesPerRequest: null })
    client.on('error', () => undefined)
    for (const sole of [false, true]) {
      const scheduler = await start({ timings, sole })
      const held = await askLease(scheduler, ['a'])
      await redis.stop('SIGKILL')
      await redis.start()
      await untilUse(redis, scheduler, { device: 'a', used: 1 })
      const lease = await askLease(scheduler, ['b'])
      const recoverMs = Number(await client.hget(`{${LEASE_PREFIX}}:g`, 'recover'))
      const grantedMs = (await scheduler.places([lease.id]))[0]?.grantedMs ?? 0
      assert.ok(grantedMs >= recoverMs)
      assert.equal(recoverMs === 0, sole)
      assert.ok(!held.lost.aborted)
      await giveBack(held, lease)
      await close(scheduler)
      await redis.settle(LEASE_PREFIX)
    }
  })

  test('a gateway whose own Redis starts again with it forgets what it had, and counts what a worker streams', async () => {
    await die(['w1', 'w2', 'w3'], 'worker')
    await die(['g1', 'g2'], SOLE_REPLICA)
    await redis.stop('SIGKILL')
    await redis.start()
    const gateway = await start({ sole: true, readersOf: () => Promise.reject(new Error('it is away')) })
    assert.deepEqual(await gateway.use(['a']), [{ used: 3, waiting: 0 }])
    const recoverMs = Number(await connect().hget(`{${LEASE_PREFIX}}:g`, 'recover'))
    const lease = await askLease(gateway, ['b'])
    assert.ok(
      ((await gateway.places([lease.id]))[0]?.grantedMs ?? 0) >= recoverMs,
      'the worker may tell of more',
    )
    assert.ok(recoverMs > 0)
    await giveBack(lease)
    await connect().flushall()
    await close(gateway)
  })

  test('a lapsed replica with very many waiters is worked off in small steps', async () => {
    const survivor = await start()
    await die(Array.from({ length: 1_000 }, (_, i) => `d${i}`))
    await untilUse(redis, survivor, { device: 'a', used: 4, waiting: 0 })
    const client = connect()
    assert.equal(await client.zcard(`{${LEASE_PREFIX}}:own:dead`), 4)
    await client.flushall()
    await close(survivor)
  })

  test('reports place and time until its turn, of any replica, while it waits', async () => {
    const schedulers = [await start(), await start()] as const
    await giveBack(await askLease(schedulers[0], ['a']))
    const held = await four(schedulers[0])
    const places = new AwaitedList<QueuePlace>()
    const first = askLease(schedulers[1], ['a'])
    await untilUse(redis, schedulers[0], { device: 'a', waiting: 1 })
    const second = askLease(schedulers[1], ['a'], { id: 'mine', onPosition: (place) => places.push(place) })
    await untilUse(redis, schedulers[0], { device: 'a', waiting: 2 })
    await places.until(([place]) => place?.position === 2)
    const { enqueuedMs, replica, etaMs, ...row } =
      (await schedulers[0].places(['mine']))[0] ?? assert.fail('unknown')
    assert.deepEqual(row, {
      id: 'mine',
      state: 'waiting',
      devices: ['a'],
      class: 'interactive',
      user: 'tester',
      grantedMs: undefined,
      position: 2,
    })
    assert.ok(enqueuedMs > 0 && replica !== '' && etaMs !== undefined)
    assert.equal((await schedulers[0].queue()).length, 6)
    await giveBack(held[0] as Lease)
    const lease = await first
    await places.until((all) => all.at(-1)?.position === 1)
    await giveBack(lease)
    await giveBack(await second, ...held)
    assert.deepEqual(await schedulers[0].places(['mine']), [])
    await close(...schedulers)
  })

  test('reports no time for a turn that cannot be known, and none for what may never end', async () => {
    const scheduler = await start()
    const etaOf = async (id: string) => (await scheduler.places([id]))[0]?.etaMs
    // Requests that are served at once, which would make every wait look short.
    for (let i = 0; i < 5; i += 1) await giveBack(await askLease(scheduler, ['b'], { class: 'bulk' }))
    const young = await Promise.all([1, 2, 3, 4].map(() => askLease(scheduler, ['b'])))
    const onB = askLease(scheduler, ['b'], { id: 'b-waits' })
    await untilUse(redis, scheduler, { device: 'b', waiting: 1 })
    assert.equal(await etaOf('b-waits'), undefined, 'only bulk streams have ended there')

    await giveBack(await askLease(scheduler, ['a']))
    const endless = await Promise.all([1, 2, 3].map(() => askLease(scheduler, ['a'], { class: 'bulk' })))
    const ending = await askLease(scheduler, ['a'])
    const onA = askLease(scheduler, ['a'], { id: 'a-waits' })
    const behind = askLease(scheduler, ['a'], { id: 'bulk-waits', class: 'bulk' })
    const onBoth = askLease(scheduler, ['a', 'b'], { id: 'both-wait' })
    await untilUse(redis, scheduler, { device: 'a', waiting: 3 })
    const first = (await etaOf('a-waits')) ?? assert.fail('one of the four streams ends')
    assert.deepEqual([await etaOf('bulk-waits'), await etaOf('both-wait')], [undefined, undefined])
    await redis.until(async () => ((await etaOf('a-waits')) ?? 0) >= first + 20)

    await giveBack(ending, ...endless, ...young)
    await giveBack(await onA, await onB)
    await giveBack(await behind, await onBoth)
    await close(scheduler)
  })

  test('bulk waiters never keep an interactive request from the stream that bulk may not have', async () => {
    const scheduler = await start()
    const bulk = await Promise.all([1, 2, 3].map(() => askLease(scheduler, ['a'], { class: 'bulk' })))
    const waiting = askLease(scheduler, ['a'], { class: 'bulk' })
    await untilUse(redis, scheduler, { device: 'a', waiting: 1 })
    // From a user with many requests, so that it comes after the bulk request.
    for (let i = 0; i < 20; i += 1) await giveBack(await askLease(scheduler, ['a'], { waitMs: 0 }))
    await giveBack(...bulk)
    await giveBack(await waiting)
    await close(scheduler)
  })

  test('two schedulers refuse the same request id', async () => {
    const schedulers = [await start(), await start()] as const
    const lease = await askLease(schedulers[0], ['a'], { id: 'same' })
    await assert.rejects(askLease(schedulers[0], ['a'], { id: 'same' }), /has a lease already/)
    await assert.rejects(askLease(schedulers[1], ['a'], { id: 'same' }), /another gateway/)
    assert.equal((await schedulers[0].use(['a']))[0]?.used, 1)
    await giveBack(lease)
    await close(...schedulers)
  })

  test('a server that has never been used grants after the time of a recovery', async () => {
    const client = connect()
    await client.flushall()
    const startedMs = performance.now()
    const scheduler = await start()
    const lease = await askLease(scheduler, ['a'])
    assert.ok(performance.now() - startedMs > QUICK_TIMINGS.leaseTtlMs - 100)
    await giveBack(lease)
    await close(scheduler)
  })
})
