// What ends a wait while Redis has granted it, but the answer is still on its way.
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import type { LeaseRequest } from '../../../../src/gateway/lease/lease.ts'
import type { LeaseScheduler } from '../../../../src/gateway/lease/lease-scheduler.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { eventually } from '../../../support/eventually.ts'
import { LEASE_PREFIX, PATIENT_TIMINGS, startScheduler } from '../../../support/lease/lease-user.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'
import { HeldRedis } from '../../../support/servers/held-redis.ts'

describe('a lease that Redis has granted, and whose grant is on its way', () => {
  const parts = new AsyncDisposableStack()
  let redis: TempRedis
  let held: HeldRedis
  let scheduler: LeaseScheduler
  let other: LeaseScheduler

  before(async () => {
    redis = parts.use(await TempRedis.create())
    held = parts.use(await HeldRedis.start(redis.url))
  })
  after(() => parts.disposeAsync())
  beforeEach(async () => {
    await redis.settle(LEASE_PREFIX)
    scheduler = await startScheduler(redis, { redis: { url: held.url }, timings: PATIENT_TIMINGS })
    other = await startScheduler(redis, { timings: PATIENT_TIMINGS })
  })
  afterEach(async () => {
    held.release()
    await scheduler.close()
    await other.close()
    assert.deepEqual(await redis.leftovers(LEASE_PREFIX), [], 'nothing is left in use')
  })

  const asked = (id: string): LeaseRequest => ({
    id,
    devices: ['a'],
    class: 'interactive',
    user: 'ann',
    signal: new AbortController().signal,
    waitMs: 600_000,
  })
  const placeOf = async (id: string) => (await other.places([id]))[0]
  const isCode = (code: string) => (error: unknown) => error instanceof CapfleetError && error.code === code
  /** Cancels it at the other replica, and waits until this one has heard of it, but not of its grant. */
  async function cancelled(id: string): Promise<void> {
    const before = scheduler.cancelled.waiting
    await redis.until(async () => (await placeOf(id))?.state === 'streaming')
    assert.equal(await other.cancel(id, 'bob'), 'streaming')
    await eventually(() => scheduler.cancelled.waiting > before, { message: 'the cancellation has arrived' })
  }

  test('is not used if it was cancelled meanwhile', async () => {
    await held.hold('answers')
    const lease = scheduler.acquire(asked('one'))
    await cancelled('one')
    held.release()
    await assert.rejects(lease, isCode('download-cancelled'))
    await redis.until(async () => (await placeOf('one')) === undefined)
    assert.deepEqual(scheduler.own, { held: 0, waiting: 0, streams: 0 })
  })

  test('is not used if it was cancelled while it returned to the queue', async () => {
    const lease = await scheduler.acquire(asked('two'))
    await held.hold('commands')
    // Its own device has free streams, so that it is granted again at once.
    const again = lease.requeue('b', { signal: new AbortController().signal, waitMs: 600_000, busyMs: 1 })
    await cancelled('two')
    held.release()
    await assert.rejects(again, isCode('download-cancelled'))
    const isRestored = async () =>
      !(await redis.leftovers(LEASE_PREFIX)).some((key) => key.endsWith('restore'))
    await redis.until(async () => (await placeOf('two')) === undefined && (await isRestored()))
  })

  test('does not return to the queue after it was cancelled', async () => {
    const lease = await scheduler.acquire(asked('three'))
    assert.equal(await other.cancel('three', 'bob'), 'streaming')
    await eventually(() => lease.lost.aborted, { message: 'the cancellation has arrived' })
    const again = lease.requeue('a', { signal: new AbortController().signal, waitMs: 600_000 })
    await assert.rejects(again, isCode('download-cancelled'))
    await redis.until(async () => (await placeOf('three')) === undefined)
  })

  test('is not used if the gateway is shutting down', async () => {
    await held.hold('answers')
    const lease = scheduler.acquire(asked('four'))
    await redis.until(async () => (await placeOf('four'))?.state === 'streaming')
    scheduler.drain()
    held.release()
    await assert.rejects(lease, isCode('draining'))
    await redis.until(async () => (await placeOf('four')) === undefined)
  })
})
