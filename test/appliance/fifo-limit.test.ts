import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FifoLimit } from '../../appliance/fifo-limit.ts'

const never = new AbortController().signal

test('gives its places, then refuses', () => {
  const limit = new FifoLimit(2)
  assert.ok(limit.tryAcquire())
  assert.ok(limit.tryAcquire())
  assert.equal(limit.tryAcquire(), undefined)
  assert.equal(limit.used, 2)
})

test('hands places to waiters in the order of arrival', async () => {
  const limit = new FifoLimit(1)
  let holder = await limit.acquire(never)
  const order: number[] = []
  const waiters = [1, 2, 3].map(async (number) => {
    const place = await limit.acquire(never)
    order.push(number)
    return place
  })
  for (const waiter of waiters) {
    holder[Symbol.dispose]()
    assert.equal(limit.tryAcquire(), undefined, 'nobody overtakes a waiter')
    holder = await waiter
  }
  holder[Symbol.dispose]()
  assert.deepEqual(order, [1, 2, 3])
  assert.equal(limit.used, 0)
})

test('a waiter that leaves is forgotten and does not take a place', async () => {
  const limit = new FifoLimit(1)
  const holder = await limit.acquire(never)
  const leaver = new AbortController()
  const left = limit.acquire(leaver.signal)
  const stays = limit.acquire(never)
  leaver.abort(new Error('left'))
  await assert.rejects(left, /left/)
  assert.equal(limit.waiting, 1)
  holder[Symbol.dispose]()
  const place = await stays
  assert.equal(limit.used, 1)
  place[Symbol.dispose]()
})

test('a place given back twice is one place', async () => {
  const limit = new FifoLimit(1)
  const first = await limit.acquire(never)
  first[Symbol.dispose]()
  const second = await limit.acquire(never)
  first[Symbol.dispose]()
  assert.equal(limit.used, 1)
  assert.equal(limit.tryAcquire(), undefined)
  second[Symbol.dispose]()
})

test('an aborted signal gets no place', async () => {
  const limit = new FifoLimit(1)
  await assert.rejects(limit.acquire(AbortSignal.abort(new Error('gone'))), /gone/)
  assert.equal(limit.used, 0)
})
