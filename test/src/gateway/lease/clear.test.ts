// When clear.lua releases suspects, at the limits of its time conditions: the scripts alone, in a real Redis.
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { LeaseScripts, type QueueTicket } from '../../../../src/gateway/lease/lease-scripts.ts'
import { LEASE_TIMINGS } from '../../../../src/gateway/lease/lease-timings.ts'
import { LEASE_PREFIX } from '../../../support/lease/lease-user.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'

describe('suspects of a device', () => {
  let redis: TempRedis
  let client: Redis
  let mine: LeaseScripts
  let dead: LeaseScripts
  before(async () => {
    redis = await TempRedis.create()
    client = new Redis(redis.url)
    mine = scriptsOf('mine')
    dead = scriptsOf('dead')
  })
  after(async () => {
    client.disconnect()
    await redis[Symbol.asyncDispose]()
  })
  beforeEach(() => redis.settle(LEASE_PREFIX))
  beforeEach(() => mine.heartbeat())
  afterEach(async () => {
    assert.equal(await mine.leave(), 0)
    assert.deepEqual(await redis.leftovers(LEASE_PREFIX), [])
  })

  function scriptsOf(replica: string): LeaseScripts {
    const context = { redis: client, keyPrefix: LEASE_PREFIX, replica, streamsPerDevice: 4 }
    return new LeaseScripts({ ...context, timings: LEASE_TIMINGS })
  }

  const narrow = (id: string) =>
    ({ id, devices: ['a'], class: 'interactive', user: 'tester', attempt: 0 }) as const

  /** The other replica takes a stream and goes silent. */
  async function suspect(): Promise<QueueTicket> {
    await dead.heartbeat()
    const { state, ...ticket } = await dead.enqueue(narrow('d1'))
    assert.equal(state, 'g')
    await lapse()
    return ticket
  }

  async function lapse(): Promise<void> {
    await client.zadd(`{${LEASE_PREFIX}}:hb`, 1, 'dead')
    await mine.tidy()
    assert.ok((await client.zcard(`{${LEASE_PREFIX}}:sus:a`)) > 0)
  }

  /** A time at which a device is asked, later than everything before. */
  async function question(): Promise<number> {
    const { nowMs } = await mine.tidy()
    for (;;) {
      const later = await mine.tidy()
      if (later.nowMs > nowMs) return later.nowMs
    }
  }

  test('do not go while a stream that broke off may account for the reader that the device counts', async () => {
    await mine.enqueue(narrow('m1'))
    await mine.heartbeat({ opened: ['m1'] })
    await suspect()
    const asked = await question()
    await mine.heartbeat({ reopening: ['m1'] })
    // The one reader is the suspect.
    assert.equal(await mine.clear('a', 1, asked), 0)
    assert.equal(await mine.clear('a', 1, await question()), 0)
    await mine.heartbeat({ opened: ['m1'] })
    assert.equal(await mine.clear('a', 1, asked), 0)
    assert.equal(await mine.clear('a', 1, await question()), 1)
    await mine.release('m1', 0)
  })

  test('are not freed by the grant of a reopened stream of which Redis only learns by a reassertion', async () => {
    const { state: _, ...ticket } = await mine.enqueue(narrow('m1'))
    await mine.heartbeat({ opened: ['m1'] })
    await suspect()
    await mine.reassert([{ ...narrow('m1'), ...ticket, kind: 'held' }])
    assert.equal(await mine.clear('a', 1, await question()), 0)
    await mine.reassert([{ ...narrow('m1'), ...ticket, kind: 'open' }])
    assert.equal(await mine.clear('a', 1, await question()), 1)
    await mine.release('m1', 0)
  })

  test('do not go by an answer from before they were live and silent once more', async () => {
    const ticket = await suspect()
    const asked = await question()
    await dead.heartbeat()
    await dead.reassert([{ ...narrow('d1'), ...ticket, kind: 'open' }])
    await lapse()
    assert.equal(await mine.clear('a', 0, asked), 0)
    assert.equal(await mine.clear('a', 0, await question()), 1)
  })

  test('stay as many as there are readers that no settled grant accounts for; the oldest go', async () => {
    await mine.enqueue(narrow('m1'))
    await mine.heartbeat({ opened: ['m1'] })
    await dead.heartbeat()
    for (const id of ['d1', 'd2', 'd3']) await dead.enqueue(narrow(id))
    await lapse()
    const left = async () => (await mine.places(['d1', 'd2', 'd3'])).map(({ id }) => id)
    assert.equal(await mine.clear('a', 4, await question()), 0)
    // Our reader and two more: of the dead replica, or of a client outside the fleet.
    assert.equal(await mine.clear('a', 3, await question()), 1)
    assert.deepEqual(await left(), ['d2', 'd3'])
    assert.equal(await mine.clear('a', 9, await question()), 0)
    assert.equal(await mine.clear('a', 1, await question()), 2)
    await mine.release('m1', 0)
  })

  test('are not freed for a grant whose stream was reported in the very millisecond of the question', async () => {
    await suspect()
    await question()
    await mine.enqueue(narrow('m1'))
    await mine.heartbeat({ opened: ['m1'] })
    const begunMs = Number(await client.zscore(`{${LEASE_PREFIX}}:on:a`, 'm1'))
    // The device may have counted the suspect before that stream began.
    assert.equal(await mine.clear('a', 1, begunMs), 0)
    assert.equal(await mine.clear('a', 1, begunMs + 1), 1)
    await mine.release('m1', 0)
  })

  test('of the very millisecond of the question stay', async () => {
    await suspect()
    const since = Number(await client.zscore(`{${LEASE_PREFIX}}:sus:a`, 'd1'))
    assert.equal(await mine.clear('a', 0, since), 0)
    assert.equal(await mine.clear('a', 0, since + 1), 1)
  })
})
