// The scripts of the scheduler alone, in a real Redis.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { LeaseScripts } from '../../../../src/gateway/lease/lease-scripts.ts'
import { LEASE_TIMINGS } from '../../../../src/gateway/lease/lease-timings.ts'
import { eventually } from '../../../support/eventually.ts'
import { LEASE_PREFIX } from '../../../support/lease/lease-user.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'

const keyOf = (name: string): string => `{${LEASE_PREFIX}}:${name}`
const HOUR_MS = 3_600_000

describe('the scripts of the scheduler', () => {
  let server: TempRedis
  let redis: Redis
  let scripts: LeaseScripts
  before(async () => {
    server = await TempRedis.create()
    redis = new Redis(server.url)
    const context = { redis, keyPrefix: LEASE_PREFIX, replica: 'x', streamsPerDevice: 1 }
    scripts = new LeaseScripts({ ...context, timings: LEASE_TIMINGS })
  })
  after(async () => {
    redis?.disconnect()
    await server?.[Symbol.asyncDispose]()
  })
  beforeEach(async () => {
    await server.settle(LEASE_PREFIX)
    await scripts.heartbeat()
  })

  let asks = 0
  const enqueue = (device: string, user: string) => {
    const id = `r${asks++}`
    const request = { id, devices: [device], class: 'interactive', user, attempt: 0 } as const
    return scripts.enqueue(request).then((answer) => ({ id, ...answer }))
  }

  test('asks reach Redis as they are, whatever characters the name of a user has', async () => {
    const users = ['two words', '"quoted", [1]', 'Zoë \\ 東', '']
    const asked = users.map((user, i) => ({
      kind: 'enqueue' as const,
      id: `u${i}`,
      devices: ['a', 'b'],
      class: 'interactive' as const,
      user,
      attempt: i,
    }))
    const replies = await scripts.exchange([...asked, { kind: 'release', id: 'u1', attempt: 1 }])
    assert.deepEqual(
      replies.map(({ state, position }) => [state, position]),
      [
        ['g', 0],
        ['w', 1],
        ['w', 2],
        ['w', 3],
        ['w', 0],
      ],
    )
    const rows = await scripts.places(['u0', 'u1', 'u2', 'u3'])
    assert.deepEqual(
      rows.map(({ id, user, devices, position }) => [id, user, devices.join(), position]),
      [
        ['u0', 'two words', 'a,b', undefined],
        ['u2', 'Zoë \\ 東', 'a,b', 1],
        ['u3', '', 'a,b', 2],
      ],
    )
    assert.deepEqual(await scripts.exchange([]), [])
  })

  test('if the clock of Redis is set back, time stays at the latest value seen, and continues from there', async () => {
    // As if that clock had been an hour ahead at its last reading.
    const seenMs = Date.now() + HOUR_MS
    await redis.hset(keyOf('g'), 'now', seenMs)
    await scripts.heartbeat()
    const leaseEndMs = Number(await redis.zscore(keyOf('hb'), 'x'))
    assert.ok(leaseEndMs >= seenMs + LEASE_TIMINGS.leaseTtlMs, 'no lease lapses early')
    const { nowMs } = await scripts.tidy()
    assert.ok(nowMs >= seenMs && nowMs < seenMs + HOUR_MS, `${nowMs - seenMs} ms later`)
    await eventually(async () => (await scripts.tidy()).nowMs > nowMs, { message: 'time goes on' })
    const { enqueuedMs } = await enqueue('a', 'ann')
    assert.ok(enqueuedMs >= nowMs)
  })

  test('however many new requests arrive, none overtakes one that has waited for a minute', async () => {
    // Grants on other devices are far ahead of the ten requests that wait here.
    const elsewhere = await Promise.all(Array.from({ length: 40 }, () => enqueue('z', 'busy')))
    for (const { id } of elsewhere) await scripts.release(id, 0)
    await enqueue('a', 'holder')
    const waiting = await Promise.all(Array.from({ length: 10 }, () => enqueue('a', 'greedy')))
    assert.deepEqual(
      waiting.map(({ position }) => position),
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    )
    let newcomers = 0
    const newcomer = async () => (await enqueue('a', `newcomer ${++newcomers}`)).position
    const pass = (ms: number) => redis.hset(keyOf('g'), 'looked', Date.now() - ms)
    // Each comes after the first waiting request, and after newcomers before it.
    assert.equal(await newcomer(), 2)
    await scripts.tidy()
    assert.equal(await newcomer(), 3)
    await scripts.tidy()
    assert.equal(await newcomer(), 4)
    await pass(20_000)
    await scripts.tidy()
    assert.equal(await newcomer(), 5, 'half a minute has not gone by')
    await pass(31_000)
    await scripts.tidy()
    assert.equal(await newcomer(), waiting.length + newcomers)
  })

  test('bulk streams that take longer than others come less often, so that their share is one of time', async () => {
    await enqueue('a', 'holder')
    // Both wait, so the distance between them is the cost of the second.
    const costs = async (requestClass: 'interactive' | 'bulk', user: string) => {
      const asked = { devices: ['a'], class: requestClass, user, attempt: 0 } as const
      const first = await scripts.enqueue({ ...asked, id: `${user} first` })
      const second = await scripts.enqueue({ ...asked, id: `${user} second` })
      return second.tag - first.tag
    }
    const heldFor = async (interactiveMs: number, bulkMs: number) => {
      await redis.hset(keyOf('hold'), 'a', interactiveMs)
      await redis.hset(keyOf('holdb'), 'a', bulkMs)
    }
    await redis.del(keyOf('hold'), keyOf('holdb'))
    assert.equal(await costs('interactive', 'a person'), 105)
    assert.equal(await costs('bulk', 'not known'), 840)
    await heldFor(1_000, 2_500)
    assert.equal(await costs('interactive', 'another person'), 105)
    assert.equal(await costs('bulk', 'longer'), 2_100)
    await heldFor(1_000, 10)
    assert.equal(await costs('bulk', 'shorter'), 840)
    await heldFor(1, 36_000_000)
    assert.equal(await costs('bulk', 'endless'), 8 * 840)
  })

  test('the duration of streams on a device is tracked separately for each class', async () => {
    const held = async () => [await redis.hget(keyOf('hold'), 'h'), await redis.hget(keyOf('holdb'), 'h')]
    const stream = async (requestClass: 'interactive' | 'bulk') => {
      await scripts.enqueue({
        id: requestClass,
        devices: ['h'],
        class: requestClass,
        user: 'ann',
        attempt: 0,
      })
      await scripts.release(requestClass, 0)
    }
    await stream('bulk')
    const [none, bulkMs] = await held()
    assert.equal(none, null)
    assert.ok(Number(bulkMs) >= 0)
    await redis.hset(keyOf('holdb'), 'h', 8_000_000)
    await stream('interactive')
    await stream('bulk')
    const [interactiveMs, laterMs] = await held()
    assert.ok(Number(interactiveMs) < 1_000_000, 'an average of interactive streams alone')
    const eighth = 7_000_000
    assert.ok(Number(laterMs) >= eighth && Number(laterMs) < eighth + 100_000, `${laterMs} ms`)
  })
})
