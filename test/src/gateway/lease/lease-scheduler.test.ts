import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import type { Lease, LeaseClass } from '../../../../src/gateway/lease/lease.ts'
import { LeaseScheduler } from '../../../../src/gateway/lease/lease-scheduler.ts'
import { LeaseScripts } from '../../../../src/gateway/lease/lease-scripts.ts'
import { LEASE_TIMINGS, type LeaseTimings } from '../../../../src/gateway/lease/lease-timings.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import type { Log } from '../../../../src/shared/base/log.ts'
import { eventually } from '../../../support/eventually.ts'
import { LEASE_PREFIX, lapse, PATIENT_TIMINGS } from '../../../support/lease/lease-user.ts'
import { pause } from '../../../support/pause.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
/** A dead replica is noticed soon; a live one must not be taken for dead because the machine is busy. */
const QUICK: LeaseTimings = {
  ...LEASE_TIMINGS,
  heartbeatMs: 50,
  leaseTtlMs: 2_000,
  unavailableMs: 50_000,
  busyMs: 300,
  openMs: 600_000,
}
let requests = 0

describe('the lease scheduler', () => {
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

  async function start(timings = LEASE_TIMINGS, replica?: string): Promise<LeaseScheduler> {
    const scheduler = await LeaseScheduler.start({
      redis: { url: redis.url },
      keyPrefix: LEASE_PREFIX,
      streamsPerDevice: 4,
      log: SILENT,
      timings,
      ...(replica === undefined ? {} : { replica }),
    })
    running.add(scheduler)
    return scheduler
  }

  /** The test's own connection. */
  function connect(): Redis {
    const client = new Redis(redis.url)
    clients.push(client)
    return client
  }

  /** Only a replica's scripts: it does what the test says and nothing else. */
  function scriptsOf(client: Redis, replica: string, timings = QUICK): LeaseScripts {
    return new LeaseScripts({ redis: client, keyPrefix: LEASE_PREFIX, replica, streamsPerDevice: 4, timings })
  }

  const narrow = (id: string) =>
    ({ id, devices: ['a'], class: 'interactive', user: 'tester', attempt: 0 }) as const

  const NEVER = new AbortController().signal
  interface Ask {
    readonly signal?: AbortSignal
    readonly waitMs?: number
    readonly class?: LeaseClass
    readonly hasBegun?: boolean
  }
  function ask(scheduler: LeaseScheduler, devices: readonly string[], options: Ask = {}): Promise<Lease> {
    return scheduler.acquire({
      id: `request-${requests++}`,
      devices,
      class: options.class ?? 'interactive',
      user: 'tester',
      signal: options.signal ?? NEVER,
      waitMs: options.waitMs ?? 20_000,
      hasBegun: options.hasBegun ?? false,
    })
  }

  /** Waits until this many requests wait for the device. */
  async function untilWaiting(scheduler: LeaseScheduler, device: string, count: number): Promise<void> {
    await redis.until(async () => (await scheduler.use([device]))[0]?.waiting === count)
  }

  async function close(...schedulers: readonly LeaseScheduler[]): Promise<void> {
    for (const scheduler of schedulers) {
      running.delete(scheduler)
      await scheduler.close()
    }
    assert.deepEqual(await redis.leftovers(LEASE_PREFIX), [])
  }

  const isCode = (code: string) => (error: unknown) => error instanceof CapfleetError && error.code === code
  const give = (lease: Lease) => lease[Symbol.asyncDispose]()

  test('refuses a lease on no device, which the scripts would read as a release', async () => {
    const scheduler = await start()
    await assert.rejects(ask(scheduler, []), /wants a lease on no device/)
    assert.deepEqual(scheduler.own, { held: 0, waiting: 0, streams: 0 })
    await close(scheduler)
  })

  test('grants four streams on a device and queues the fifth until one is given back', async () => {
    const scheduler = await start()
    const four = await Promise.all([1, 2, 3, 4].map(() => ask(scheduler, ['a'])))
    const fifth = ask(scheduler, ['a'])
    await untilWaiting(scheduler, 'a', 1)
    assert.deepEqual(await scheduler.use(['a', 'b']), [
      { used: 4, waiting: 1 },
      { used: 0, waiting: 0 },
    ])
    await give(four[0] as Lease)
    await give(await fifth)
    for (const lease of four) await give(lease)
    await close(scheduler)
  })

  test('serves waiters first come, first served, over two replicas', async () => {
    const schedulers = [await start(), await start()] as const
    const holders = await Promise.all([1, 2, 3, 4].map(() => ask(schedulers[0], ['a'])))
    const order: number[] = []
    const waiting: Promise<void>[] = []
    for (let index = 0; index < 8; index += 1) {
      const scheduler = schedulers[index % 2 === 0 ? 0 : 1]
      waiting.push(
        ask(scheduler, ['a']).then(async (lease) => {
          order.push(index)
          await give(lease)
        }),
      )
      await untilWaiting(schedulers[0], 'a', index + 1)
    }
    await give(holders[0] as Lease)
    await Promise.all(waiting)
    assert.deepEqual(order, [0, 1, 2, 3, 4, 5, 6, 7])
    for (const lease of holders) await give(lease)
    await close(...schedulers)
  })

  test('grants all devices of a request together and holds none while it waits', async () => {
    const scheduler = await start()
    const full = await Promise.all([1, 2, 3, 4].map(() => ask(scheduler, ['a'])))
    const wide = ask(scheduler, ['a', 'b'])
    await untilWaiting(scheduler, 'a', 1)
    assert.equal((await scheduler.use(['b']))[0]?.used, 0)
    await give(full[0] as Lease)
    const lease = await wide
    assert.deepEqual(
      (await scheduler.use(['a', 'b'])).map((use) => use.used),
      [4, 1],
    )
    await give(lease)
    for (const other of full) await give(other)
    await close(scheduler)
  })

  test('an earlier wide waiter reserves its streams: a later narrow one cannot starve it', async () => {
    const scheduler = await start()
    const onA = await Promise.all([1, 2, 3, 4].map(() => ask(scheduler, ['a'])))
    const onB = await Promise.all([1, 2, 3].map(() => ask(scheduler, ['b'])))
    const wide = ask(scheduler, ['a', 'b'])
    await untilWaiting(scheduler, 'b', 1)
    await assert.rejects(ask(scheduler, ['b'], { waitMs: 0 }), isCode('queue-timeout'))
    await give(onA[0] as Lease)
    await give(await wide)
    // After the wide request is gone, the fourth stream of b is free.
    await give(await ask(scheduler, ['b'], { waitMs: 0 }))
    for (const lease of [...onA, ...onB]) await give(lease)
    await close(scheduler)
  })

  test('a cancelled waiter frees its reservation at once', async () => {
    const scheduler = await start()
    const onA = await Promise.all([1, 2, 3, 4].map(() => ask(scheduler, ['a'])))
    const onB = await Promise.all([1, 2, 3].map(() => ask(scheduler, ['b'])))
    const abort = new AbortController()
    const wide = ask(scheduler, ['a', 'b'], { signal: abort.signal })
    await untilWaiting(scheduler, 'b', 1)
    const narrow = ask(scheduler, ['b'])
    await untilWaiting(scheduler, 'b', 2)
    const reason = new Error('left')
    abort.abort(reason)
    await assert.rejects(wide, reason)
    await give(await narrow)
    for (const lease of [...onA, ...onB]) await give(lease)
    await close(scheduler)
  })

  test('reports the place in line when the wait is over', async () => {
    const scheduler = await start()
    const four = await Promise.all([1, 2, 3, 4].map(() => ask(scheduler, ['a'])))
    const abort = new AbortController()
    const first = ask(scheduler, ['a'], { signal: abort.signal })
    await untilWaiting(scheduler, 'a', 1)
    await assert.rejects(ask(scheduler, ['a'], { waitMs: 30 }), (error) => {
      assert.ok(error instanceof CapfleetError)
      assert.equal(error.code, 'queue-timeout')
      assert.equal(error.details.members?.position, 2)
      return true
    })
    abort.abort(new Error('left'))
    await assert.rejects(first)
    for (const lease of four) await give(lease)
    await close(scheduler)
  })

  test('bulk requests leave one stream of a device to interactive ones', async () => {
    const scheduler = await start()
    const bulk = await Promise.all([1, 2, 3].map(() => ask(scheduler, ['a'], { class: 'bulk' })))
    await assert.rejects(ask(scheduler, ['a'], { class: 'bulk', waitMs: 0 }), isCode('queue-timeout'))
    const person = await ask(scheduler, ['a'], { waitMs: 0 })
    for (const lease of [...bulk, person]) await give(lease)
    await close(scheduler)
  })

  test('giving back twice, and an aborted request, change nothing more', async () => {
    const scheduler = await start()
    const [one, two] = [await ask(scheduler, ['a']), await ask(scheduler, ['a'])]
    await give(one)
    await give(one)
    assert.equal((await scheduler.use(['a']))[0]?.used, 1)
    await assert.rejects(ask(scheduler, ['a'], { signal: AbortSignal.abort(new Error('left')) }), /left/)
    await give(two)
    await close(scheduler)
  })

  test('every script sent a second time changes nothing', async () => {
    const client = connect()
    // Neither its heartbeat nor the lowered limit expires during the test, even on a busy machine.
    const scripts = scriptsOf(client, 'r', { ...QUICK, leaseTtlMs: 120_000, busyMs: 2_000 })
    const used = () => client.hget(`{${LEASE_PREFIX}}:use`, 'a')
    await scripts.heartbeat()
    const request = {
      id: 'id1',
      devices: ['a', 'b'],
      class: 'interactive',
      user: 'tester',
      attempt: 0,
    } as const
    const { state, ...ticket } = await scripts.enqueue(request)
    assert.equal(state, 'g')
    assert.equal((await scripts.enqueue(request)).state, 'g')
    assert.equal(await used(), '1 0')
    const held = [{ ...request, ...ticket, kind: 'held', attempt: 0 }] as const
    for (const _ of [1, 2])
      assert.deepEqual(await scripts.reassert(held), [{ id: 'id1', attempt: 0, state: 'g' }])
    assert.equal(await used(), '1 0')
    // The lowered limit is the number of remaining streams: none. So it waits.
    for (const _ of [1, 2])
      assert.deepEqual(await scripts.requeue('id1', 'a', 1), { state: 'w', position: 1 })
    assert.equal(await used(), '0 0 0')
    assert.deepEqual(await scripts.counts(['a', 'c']), [
      { used: 0, waiting: 1, limit: 0 },
      { used: 0, waiting: 0 },
    ])
    const waiting = [{ ...request, ...ticket, kind: 'waiting', attempt: 1 }] as const
    for (const _ of [1, 2])
      assert.deepEqual(await scripts.reassert(waiting), [{ id: 'id1', attempt: 1, state: 'w' }])
    const isGranted = async (): Promise<boolean> => {
      await scripts.tidy()
      return (await scripts.places(['id1']))[0]?.state === 'streaming'
    }
    await eventually(isGranted, { message: 'the lowered limit is lifted after its time' })
    for (const _ of [1, 2])
      assert.deepEqual(await scripts.requeue('id1', 'a', 1), { state: 'g', position: 0 })
    assert.equal(await scripts.release('id1', 1), 'g')
    assert.equal(await scripts.release('id1', 1), '')
    assert.equal(await used(), null)
    for (const _ of [1, 2]) assert.equal(await scripts.leave(), 0)
    assert.deepEqual(await redis.leftovers(LEASE_PREFIX), [])
  })

  test('a lapsed replica: its waiters are dropped, its grants count until they are freed', async () => {
    const timings = { ...QUICK, suspectMs: 500 }
    const survivor = await start(timings)
    // A replica that sends one heartbeat, takes everything, and then goes silent.
    const dead = scriptsOf(connect(), 'dead', PATIENT_TIMINGS)
    await dead.heartbeat()
    for (const id of ['d1', 'd2', 'd3', 'd4', 'd5']) await dead.enqueue(narrow(id))
    const waiting = ask(survivor, ['a'])
    await untilWaiting(survivor, 'a', 2)
    const startedMs = performance.now()
    await lapse(redis, 'dead')
    const lease = await waiting
    const waitedMs = performance.now() - startedMs
    assert.ok(waitedMs > timings.suspectMs - 100, `granted after ${waitedMs} ms`)
    assert.equal((await survivor.use(['a']))[0]?.waiting, 0)
    await give(lease)
    await close(survivor)
  })

  test('a replica that returns before its suspects are freed keeps its streams', async () => {
    const client = connect()
    const other = await start(QUICK)
    const paused = scriptsOf(client, 'paused', PATIENT_TIMINGS)
    await paused.heartbeat()
    const { state: _, ...ticket } = await paused.enqueue(narrow('p1'))
    await lapse(redis, 'paused')
    await redis.until(async () => (await client.zcard(`{${LEASE_PREFIX}}:sus:a`)) > 0)
    assert.equal((await paused.heartbeat()).state, 'lapsed')
    await paused.reassert([{ ...narrow('p1'), ...ticket, kind: 'held', attempt: 0 }])
    assert.equal(await client.zcard(`{${LEASE_PREFIX}}:sus:a`), 0)
    assert.equal((await other.use(['a']))[0]?.used, 1)
    assert.equal(await paused.leave(), 0)
    await close(other)
  })

  test('a grant whose wake-up got lost arrives with a heartbeat', async () => {
    // Another client is first in line for the inbox, takes the wake-up and keeps it.
    const thief = connect()
    const stolen = thief.blmpop(60, 1, `{${LEASE_PREFIX}}:in:mine`, 'LEFT')
    const other = connect()
    await other.ping()
    other.disconnect()
    const scheduler = await start(QUICK, 'mine')
    const four = await Promise.all([1, 2, 3, 4].map(() => ask(scheduler, ['a'])))
    const fifth = ask(scheduler, ['a'])
    await untilWaiting(scheduler, 'a', 1)
    await give(four[0] as Lease)
    const lease = await fifth
    assert.deepEqual((await stolen)?.[1], [`5 ${lease.id}`])
    for (const held of [...four, lease]) await give(held)
    await close(scheduler)
  })

  test('a late grant of an earlier request with the same id wakes no one', async () => {
    const scheduler = await start(QUICK, 'mine')
    const four = await Promise.all([1, 2, 3, 4].map(() => ask(scheduler, ['a'])))
    const again = { id: 'again', devices: ['a'], class: 'interactive', user: 'tester' } as const
    const left = new AbortController()
    const first = scheduler.acquire({ ...again, signal: left.signal, waitMs: 20_000 })
    await untilWaiting(scheduler, 'a', 1)
    left.abort(new Error('left'))
    await assert.rejects(first, /left/)
    let isGranted = false
    const second = scheduler.acquire({ ...again, signal: NEVER, waitMs: 20_000 })
    void second.then(() => (isGranted = true))
    await untilWaiting(scheduler, 'a', 1)
    const client = connect()
    await client.rpush(`{${LEASE_PREFIX}}:in:mine`, '5 again')
    await redis.until(async () => (await client.llen(`{${LEASE_PREFIX}}:in:mine`)) === 0)
    assert.equal((await scheduler.use(['a']))[0]?.waiting, 1)
    assert.ok(!isGranted)
    for (const lease of four) await give(lease)
    await give(await second)
    await close(scheduler)
  })

  test('Redis restarts: held leases stay, waiters keep their place, nothing is leaked', async () => {
    const scheduler = await start()
    const four = await Promise.all([1, 2, 3, 4].map(() => ask(scheduler, ['a'])))
    const fifth = ask(scheduler, ['a'])
    await untilWaiting(scheduler, 'a', 1)
    await redis.stop('SIGKILL')
    await redis.start()
    assert.ok(four.every((lease) => !lease.lost.aborted))
    await give(four[0] as Lease)
    await give(await fifth)
    for (const lease of four) await give(lease)
    await close(scheduler)
  })

  test('Redis loses its data: live leases are asserted again', async () => {
    const scheduler = await start(QUICK)
    const three = await Promise.all([1, 2, 3].map(() => ask(scheduler, ['a'])))
    const client = connect()
    await client.flushall()
    await redis.until(async () => (await scheduler.use(['a']))[0]?.used === 3)
    for (const lease of three) await give(lease)
    await close(scheduler)
  })

  test('Redis unreachable: nothing can start, running leases live until the fence, then are cut', async () => {
    const timings = { ...QUICK, unavailableMs: 3_000, fenceMs: 15_000 }
    const scheduler = await start(timings)
    const lease = await ask(scheduler, ['a'])
    const full = await Promise.all([1, 2, 3, 4].map(() => ask(scheduler, ['b'])))
    const waiting = assert.rejects(ask(scheduler, ['b']), isCode('scheduler-unavailable'))
    await untilWaiting(scheduler, 'b', 1)
    const cut = new Promise<void>((resolve) => lease.lost.addEventListener('abort', () => resolve()))
    const startedMs = performance.now()
    await redis.stop()
    await assert.rejects(ask(scheduler, ['a']), isCode('scheduler-unavailable'))
    await waiting
    assert.ok(!lease.lost.aborted)
    await cut
    assert.ok(performance.now() - startedMs > timings.fenceMs - 500)
    await redis.start()
    for (const one of [lease, ...full]) await give(one)
    // Each of its heartbeats changes a key.
    await redis.until(() => scheduler.reachable)
    await close(scheduler)
  })

  test('draining refuses new requests and sends waiters away, leases stay', async () => {
    const scheduler = await start()
    const four = await Promise.all([1, 2, 3, 4].map(() => ask(scheduler, ['a'])))
    const fifth = ask(scheduler, ['a'])
    await untilWaiting(scheduler, 'a', 1)
    scheduler.drain()
    await assert.rejects(fifth, isCode('draining'))
    await assert.rejects(ask(scheduler, ['b']), isCode('draining'))
    assert.equal((await scheduler.use(['a']))[0]?.used, 4)
    for (const lease of four) await give(lease)
    await close(scheduler)
  })

  test('while it drains, requests in progress still wait and are granted, until the end; all others are handed back', async () => {
    const scheduler = await start()
    const four = await Promise.all([1, 2, 3, 4].map(() => ask(scheduler, ['a'])))
    const begun = ask(scheduler, ['a'], { hasBegun: true })
    const never = ask(scheduler, ['a'], { hasBegun: true })
    const waits = assert.rejects(ask(scheduler, ['a']), isCode('draining'))
    await untilWaiting(scheduler, 'a', 3)
    scheduler.drain()
    await waits
    await assert.rejects(ask(scheduler, ['b']), isCode('draining'))
    await give(await ask(scheduler, ['b'], { hasBegun: true }))
    await give(four[0] as Lease)
    await begun
    const isLast = assert.rejects(never, isCode('draining'))
    await close(scheduler)
    await isLast
  })

  test('random requests over three replicas: never five on a device, none forgotten, nothing left', async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    const schedulers = [await start(), await start(), await start()]
    const devices = ['a', 'b', 'c', 'd']
    const used = new Map<string, number>()
    let most = 0
    const client = async (): Promise<void> => {
      for (let round = 0; round < 25; round += 1) {
        const wanted = devices.filter(() => random.next() < 0.4)
        if (wanted.length === 0) wanted.push(random.pick(devices))
        const abort = new AbortController()
        const impatient = random.next() < 0.3
        if (impatient)
          void pause(random.integer(0, 20), 'users leave at any moment').then(() =>
            abort.abort(new Error('left')),
          )
        const lease = await ask(random.pick(schedulers), wanted, { signal: abort.signal }).catch((error) => {
          assert.match(String(error), /left/)
        })
        if (!lease) continue
        for (const device of wanted) {
          used.set(device, (used.get(device) ?? 0) + 1)
          most = Math.max(most, used.get(device) ?? 0)
        }
        await pause(random.integer(0, 5), 'users hold their stream for some time')
        for (const device of wanted) used.set(device, (used.get(device) ?? 0) - 1)
        await give(lease)
      }
    }
    await Promise.all(Array.from({ length: 40 }, client))
    assert.equal(most, 4)
    await close(...schedulers)
  })
})
