import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Reader, StreamLimit } from '../../../appliance/downloads/stream-limit.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'

const never = new AbortController().signal
const reader = (what: string, user = 'analyst'): Reader => ({
  mode: 'single',
  commandLine: `GET /api/v1/pcap/single?StreamName=${what}`,
  what,
  captures: [what],
  filter: 'tcp',
  sliceBytes: undefined,
  user,
  follows: false,
  startedAt: '2026-11-20T09:30:00.000Z',
  bytes: 7n,
  totals: undefined,
})
const takeAll = async (slots: StreamLimit): Promise<Disposable[]> =>
  await Promise.all(
    ['a', 'b', 'c', 'd'].map((what) => slots.acquire(reader(what), { waitMs: 0, signal: never })),
  )

test('the fifth download is refused with the readers of the four', async () => {
  const slots = new StreamLimit()
  await takeAll(slots)
  await assert.rejects(slots.acquire(reader('e'), { waitMs: 0, signal: never }), (error) => {
    assert.ok(error instanceof CapfleetError)
    assert.equal(error.code, 'download-slots-exhausted')
    assert.ok((error.details.retryAfterS ?? 0) > 0)
    const readers = error.details.members?.readers as { what: string; bytes: string }[]
    assert.deepEqual(
      readers.map(({ what, bytes }) => [what, bytes]),
      ['a', 'b', 'c', 'd'].map((what) => [what, '7']),
    )
    return true
  })
  assert.equal(slots.readers.size, 4)
})

test('with Wait the fifth gets the first slot that falls free', async () => {
  const slots = new StreamLimit()
  const [, second] = await takeAll(slots)
  const waiting = slots.acquire(reader('e'), { waitMs: 60_000, signal: never })
  assert.equal(slots.waiting, 1)
  second?.[Symbol.dispose]()
  using _slot = await waiting
  assert.deepEqual(
    [...slots.readers].map(({ what }) => what),
    ['a', 'c', 'd', 'e'],
  )
})

test('a wait that times out is rejected like a request that does not wait', async () => {
  const slots = new StreamLimit()
  await takeAll(slots)
  await assert.rejects(slots.acquire(reader('e'), { waitMs: 20, signal: never }), {
    code: 'download-slots-exhausted',
  })
  assert.equal(slots.waiting, 0)
})

test('a waiter whose client leaves is gone at once', async () => {
  const slots = new StreamLimit()
  const [first] = await takeAll(slots)
  const client = new AbortController()
  const waiting = slots.acquire(reader('e'), { waitMs: 60_000, signal: client.signal })
  client.abort(new Error('client gone'))
  await assert.rejects(waiting, /client gone/)
  first?.[Symbol.dispose]()
  assert.equal(slots.readers.size, 3)
})

const NOW = { waitMs: 0, signal: never }
const LATER = { waitMs: 60_000, signal: never }

const follower = (what: string, user?: string): Reader => ({
  ...reader(what, user),
  follows: true,
})

test('downloads that follow leave one slot to others, and wait for one of theirs', async () => {
  const slots = new StreamLimit()
  const [first] = await Promise.all(['a', 'b', 'c'].map((what) => slots.acquire(follower(what), NOW)))
  await assert.rejects(slots.acquire(follower('d'), NOW), { code: 'download-slots-exhausted' })
  const waiting = slots.acquire(follower('d'), LATER)
  const other = await slots.acquire(reader('e'), NOW)
  other[Symbol.dispose]()
  assert.equal(slots.waiting, 1)
  first?.[Symbol.dispose]()
  await waiting
  assert.deepEqual(
    [...slots.readers].map(({ what }) => what),
    ['b', 'c', 'd'],
  )
})

test('a slot is wanted when another user waits for it, or was refused it just now', async () => {
  const slots = new StreamLimit()
  const mine = reader('a', 'ann')
  const held = await Promise.all([1, 2, 3, 4].map(() => slots.acquire(mine, NOW)))
  await assert.rejects(slots.acquire(reader('b', 'ann'), NOW))
  assert.equal(slots.isWantedByOthers(mine, 60_000), false, 'by nobody else')
  const waiting = slots.acquire(reader('b', 'bob'), LATER)
  assert.equal(slots.isWantedByOthers(mine, 60_000), true)
  held[0]?.[Symbol.dispose]()
  await waiting
  assert.equal(slots.isWantedByOthers(mine, 60_000), false)
  await assert.rejects(slots.acquire(reader('b', 'bob'), NOW))
  assert.equal(slots.isWantedByOthers(mine, 60_000), true)
  assert.equal(slots.isWantedByOthers(mine, -1), false, 'too long ago')
})

test('a place for one that follows is wanted by another that follows, not by others', async () => {
  const slots = new StreamLimit()
  for (const what of ['a', 'b', 'c']) await slots.acquire(follower(what, 'ann'), NOW)
  const client = new AbortController()
  const waiting = slots.acquire(follower('d', 'bob'), { waitMs: 60_000, signal: client.signal })
  assert.equal(slots.isWantedByOthers(follower('a', 'ann'), 60_000), true)
  assert.equal(slots.isWantedByOthers(reader('e', 'ann'), 60_000), false)
  client.abort(new Error('client gone'))
  await assert.rejects(waiting, /client gone/)
})
