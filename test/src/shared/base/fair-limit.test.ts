import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FairLimit } from '../../../../src/shared/base/fair-limit.ts'

const never = new AbortController().signal

test('gives its places, then refuses', () => {
  const limit = new FairLimit({ places: 2 })
  assert.ok(limit.tryAcquire())
  assert.ok(limit.tryAcquire())
  assert.equal(limit.tryAcquire(), undefined)
  assert.equal(limit.used, 2)
})

test('hands places to waiters in the order of arrival', async () => {
  const limit = new FairLimit({ places: 1 })
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
  const limit = new FairLimit({ places: 1 })
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
  const limit = new FairLimit({ places: 1 })
  const first = await limit.acquire(never)
  first[Symbol.dispose]()
  const second = await limit.acquire(never)
  first[Symbol.dispose]()
  assert.equal(limit.used, 1)
  assert.equal(limit.tryAcquire(), undefined)
  second[Symbol.dispose]()
})

test('an aborted signal gets no place', async () => {
  const limit = new FairLimit({ places: 1 })
  await assert.rejects(limit.acquire(AbortSignal.abort(new Error('gone'))), /gone/)
  assert.equal(limit.used, 0)
})

test('a place goes to the user who has the fewest, however many wait for another', async () => {
  const limit = new FairLimit({ places: 2 })
  const held = [await limit.acquire(never, 'ann'), await limit.acquire(never, 'ann')]
  const order: string[] = []
  const wait = async (user: string): Promise<void> => {
    held.push(await limit.acquire(never, user))
    order.push(user)
  }
  const waiters = ['ann', 'ann', 'ann', 'bob', 'bob', 'cat'].map(wait)
  assert.deepEqual([limit.isWantedByOthers('ann'), limit.isWantedByOthers('dan')], [true, true])
  for (const next of [3, 0, 5, 4, 1, 2]) {
    held.shift()?.[Symbol.dispose]()
    await waiters[next]
  }
  assert.deepEqual(order, ['bob', 'ann', 'cat', 'bob', 'ann', 'ann'])
  assert.equal(limit.used, 2)
})

test('a user is wanted by others only while one of them waits', async () => {
  const limit = new FairLimit({ places: 1 })
  const first = await limit.acquire(never, 'ann')
  const second = limit.acquire(never, 'ann')
  assert.equal(limit.isWantedByOthers('ann'), false)
  const third = limit.acquire(never, 'bob')
  assert.equal(limit.isWantedByOthers('ann'), true)
  first[Symbol.dispose]()
  const seconds = await second
  assert.deepEqual([limit.isWantedByOthers('ann'), limit.isWantedByOthers('bob')], [true, false])
  seconds[Symbol.dispose]()
  await third
  assert.equal(limit.isWantedByOthers('ann'), false)
})

test('with one place users take turns, however many of one wait', async () => {
  const limit = new FairLimit({ places: 1 })
  const holder = await limit.acquire(never, 'dan')
  const order: string[] = []
  const waiting = ['ann', 'ann', 'ann', 'bob', 'cat', 'bob'].map(async (user) => {
    using _place = await limit.acquire(never, user)
    order.push(user)
  })
  holder[Symbol.dispose]()
  await Promise.all(waiting)
  assert.deepEqual(order, ['ann', 'bob', 'cat', 'ann', 'bob', 'ann'])
})

test('reports when there is no room to wait, for one user or for all', async () => {
  const limit = new FairLimit({ places: 1, waitingMax: 3, waitingPerUserMax: 2 })
  assert.equal(limit.hasRoomFor('ann'), true)
  const holder = await limit.acquire(never, 'ann')
  const waiting = ['ann', 'ann', 'bob'].map((user) => limit.acquire(never, user))
  assert.deepEqual([limit.hasRoomFor('ann'), limit.hasRoomFor('cat')], [false, false])
  holder[Symbol.dispose]()
  assert.equal(limit.hasRoomFor('cat'), true)
  await Promise.all(waiting.map(async (place) => (await place)[Symbol.dispose]()))
  assert.deepEqual([limit.used, limit.waiting, limit.hasRoomFor('ann')], [0, 0, true])
})
