// One device, one user who always has a hundred waiting requests, and two hundred users with one each. Time is counted
// in streams that were served, so the result does not depend on the machine.
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import type { LeaseScheduler } from '../../../../src/gateway/lease/lease-scheduler.ts'
import { askLease, giveBack, LEASE_PREFIX, startScheduler } from '../../../support/lease/lease-user.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'

const OTHERS = 200
const GREEDY_REQUESTS = 100
const SERVED = 900

/** How long the others waited, in streams that began meanwhile, sorted. */
async function waitsOfOthers(
  scheduler: LeaseScheduler,
  nameOf: (client: number) => string,
): Promise<readonly number[]> {
  const clients = [
    ...Array<number>(GREEDY_REQUESTS).fill(0),
    ...Array.from({ length: OTHERS }, (_, i) => i + 1),
  ]
  const waits: number[] = []
  const ended = new AbortController()
  let served = 0
  const runs = clients.map(async (client) => {
    while (served < SERVED) {
      const askedAt = served
      const lease = await askLease(scheduler, ['a'], { user: nameOf(client), signal: ended.signal }).catch(
        () => undefined,
      )
      if (lease === undefined) return
      served += 1
      // In the first round the device is empty.
      if (client !== 0 && askedAt > OTHERS) waits.push(served - askedAt)
      await giveBack(lease)
    }
    ended.abort(new Error('enough'))
  })
  await Promise.all(runs)
  assert.ok(ended.signal.aborted, `only ${served} were served before somebody had waited too long`)
  return waits.sort((a, b) => a - b)
}

describe('fairness', () => {
  let redis: TempRedis
  let scheduler: LeaseScheduler
  before(async () => {
    redis = await TempRedis.create()
  })
  after(() => redis?.[Symbol.asyncDispose]())
  beforeEach(async () => {
    await redis.settle(LEASE_PREFIX)
    scheduler = await startScheduler(redis, { streamsPerDevice: 1 })
  })
  afterEach(() => scheduler.close())

  for (const isFair of [true, false]) {
    const name = isFair
      ? 'the median wait of modest users is within 1.2 of their fair share'
      : 'negative control: where all have one name, the greedy user is served first'
    test(name, async (t) => {
      const waits = await waitsOfOthers(scheduler, (client) => (isFair ? `user-${client}` : 'all'))
      const median = waits[Math.floor(waits.length / 2)] ?? Number.NaN
      t.diagnostic(`${waits.length} waits, median ${median}, fair share ${OTHERS + 1}`)
      assert.equal(median <= 1.2 * (OTHERS + 1), isFair)
      await scheduler.close()
      assert.deepEqual(await redis.leftovers(LEASE_PREFIX), [])
    })
  }
})
