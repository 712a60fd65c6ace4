// The records of exports, in a real Redis.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { ExportOrder } from '../../../../src/gateway/export/export-order.ts'
import { firstCheckpoint } from '../../../../src/gateway/export/export-pieces.ts'
import { LIVE_STATES } from '../../../../src/gateway/export/export-record.ts'
import { ExportStore } from '../../../../src/gateway/export/export-store.ts'
import { createLog } from '../../../../src/shared/base/log.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'

const LOG = createLog('test', 'silent')

let number = 0

function orderBy(user: string, more: Partial<ExportOrder> = {}): ExportOrder {
  number += 1
  return {
    id: `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
    user,
    createdMs: 1_790_000_000_000 + number,
    plan: {
      kind: 'timerange',
      query: 'TSBegin=1&TSEnd=2&TSUnit=nanos',
      capturesMax: null,
      forcedFilters: [],
      devices: ['east'],
    },
    align: false,
    partTimeNs: null,
    partBytes: null,
    target: 'local',
    onMissing: 'fail',
    reason: null,
    scheduleId: null,
    ...more,
  }
}

describe('exports in Redis', () => {
  let redis: TempRedis
  let store: ExportStore

  before(async () => {
    redis = await TempRedis.create()
    store = new ExportStore({ redis: { url: redis.url }, keyPrefix: 'test', log: LOG })
  })
  beforeEach(() => redis.settle('test'))
  after(async () => {
    await store[Symbol.asyncDispose]()
    await redis[Symbol.asyncDispose]()
  })

  test('an order is kept as it is, and no other id is known', async () => {
    const order = orderBy('ann')
    assert.equal(await store.create(order, 10), order.id)
    const record = await store.find(order.id)
    assert.deepEqual([record?.order, record?.state, record?.stage], [order, 'queued', 'waiting'])
    for (const id of ['00000000-0000-4000-8000-999999999999', '', '*', 'all'])
      assert.equal(await store.find(id), undefined)
  })

  test('a repeated key is the same order, or a conflict; each user has separate keys', async () => {
    const first = orderBy('ann')
    const asked = '/v1/exports?TSBegin=-1h'
    await store.create(first, 10, { key: 'k', asked })
    assert.equal(await store.create(orderBy('ann'), 10, { key: 'k', asked }), first.id)
    await assert.rejects(store.create(orderBy('ann'), 10, { key: 'k', asked: 'other' }), {
      code: 'idempotency-conflict',
    })
    const other = orderBy('bob')
    assert.equal(await store.create(other, 10, { key: 'k', asked }), other.id)
  })

  test('orders that come at once with one key are one', async () => {
    const idempotency = { key: 'k', asked: 'a' }
    const ids = await Promise.all(
      Array.from({ length: 20 }, () => store.create(orderBy('ann'), 30, idempotency)),
    )
    assert.equal(new Set(ids).size, 1)
  })

  test('a user can have a limited number of unfinished exports, and room again when one has ended', async () => {
    const [first] = [orderBy('ann'), orderBy('ann')]
    await store.create(first, 2)
    await store.create(orderBy('ann'), 2)
    await assert.rejects(store.create(orderBy('ann'), 2), { code: 'user-quota' })
    await store.create(orderBy('bob'), 2)
    await store.change(first, { state: 'complete' })
    await store.create(orderBy('ann'), 2)
  })

  test('exports of an earlier user of the name take no space, and delay no one', async () => {
    const [older, newer] = [orderBy('ann'), orderBy('ann')]
    for (const order of [older, newer]) await store.create(order, 2)
    const userSinceMs = newer.createdMs + 1
    const own = [0, 1].map(() => orderBy('ann', { userSinceMs }))
    for (const [at, order] of own.entries()) {
      assert.equal(await store.liveOf(order), at)
      assert.equal(await store.create(order, 2), order.id)
    }
    await assert.rejects(store.create(orderBy('ann', { userSinceMs }), 2), {
      code: 'user-quota',
      message: /^you have 2 exports /,
    })
    await store.change(newer, { state: 'complete' })
    await assert.rejects(store.create(orderBy('ann', { userSinceMs }), 2), { code: 'user-quota' })
    const [first] = own
    assert.ok(first)
    await store.change(first, { state: 'complete' })
    await store.create(orderBy('ann', { userSinceMs }), 2)
  })

  test('an order that is sent again, because its answer was lost, is the same one', async () => {
    const order = orderBy('ann')
    assert.equal(await store.create(order, 1), order.id)
    await store.change(order, { state: 'running' })
    assert.equal(await store.create(order, 1), order.id)
    assert.equal((await store.find(order.id))?.state, 'running')
  })

  test('only its writer changes an export, and no one a cancelled one', async () => {
    const order = orderBy('ann')
    await store.create(order, 10)
    assert.deepEqual(await store.change(order, { writer: 'a' }, { states: LIVE_STATES }), {
      isChanged: true,
      state: 'queued',
      writer: '',
    })
    assert.equal((await store.change(order, { writer: 'b' }, { states: LIVE_STATES })).writer, 'a')
    assert.equal((await store.change(order, { stage: 'fetching' }, { writer: 'a' })).isChanged, false)
    assert.equal((await store.change(order, { stage: 'fetching' }, { writer: 'b' })).isChanged, true)
    await store.change(order, { state: 'cancelled' }, { states: LIVE_STATES })
    const late = await store.change(order, { state: 'complete' }, { writer: 'b', states: LIVE_STATES })
    assert.deepEqual([late.isChanged, late.state], [false, 'cancelled'])
    assert.deepEqual(await store.live(), [])
  })

  test('changes are read back, and null removes a field', async () => {
    const order = orderBy('ann')
    await store.create(order, 10)
    const error = { code: 'device-unreachable', detail: 'gone' } as const
    await store.change(order, { error, fetching: { device: 'east', bytes: 7 }, startedMs: 5 })
    const record = await store.find(order.id)
    assert.deepEqual([record?.error, record?.fetching.get('east'), record?.startedMs], [error, 7, 5])
    assert.equal(record?.revision, 2)
    await store.change(order, { error: null, fetching: { device: 'east', bytes: 0 } })
    const after = await store.find(order.id)
    assert.deepEqual([after?.error, after?.fetching.size], [undefined, 0])
  })

  test('files are kept one by one, and may be read once all are published', async () => {
    const order = orderBy('ann')
    await store.create(order, 10)
    const file = (number: number) => ({
      name: `${number}.pcap`,
      bytes: '24',
      packets: '0',
      firstNs: null,
      lastNs: null,
    })
    const made = (number: number) => ({ ...file(number), path: `/${number}`, pcapBytes: '24' })
    const published = (number: number) => ({ ...file(number), sha256: String(number) })
    const checkpoint = { ...firstCheckpoint(order), fileCount: 2 }
    await store.change(order, { made: { from: 0, files: [made(0), made(1), made(2)] } })
    await store.change(order, { checkpoint, made: { from: 1, files: [made(3)] } })
    assert.deepEqual(await store.madeFiles(order.id, 2), [made(0), made(3)])
    assert.deepEqual((await store.findWhole(order.id))?.files, [])
    for (const from of [0, 1])
      await store.change(order, { made: { from, files: [published(from)] }, published: from + 1 })
    await store.change(order, { state: 'partial', published: 2 }, { files: 'published' })
    const whole = await store.findWhole(order.id)
    assert.deepEqual(whole?.files, [published(0), published(1)])
    assert.deepEqual(whole && (await store.keptFiles(whole.record, 1)), [published(1)])
    // After filling in vain, it has its previous files.
    const base = { checkpoint, endedMs: 1, expiresMs: 2, count: 1 }
    await store.change(order, { state: 'queued', base, checkpoint: firstCheckpoint(order) })
    await store.change(order, { made: { from: 0, files: [made(7)] } })
    assert.deepEqual((await store.findWhole(order.id))?.files, [published(0), published(1)])
    await store.change(order, { state: 'partial', base: null, checkpoint })
    assert.deepEqual((await store.findWhole(order.id))?.files, [published(0), published(1)])
    assert.deepEqual(await store.madeFiles(order.id, 1), [])
    const left = async () => (await redis.leftovers('test')).filter((key) => key.includes(order.id))
    assert.equal((await left()).length, 2)
    await store.forget(order)
    assert.deepEqual(await left(), [])
  })

  test('pages hold all exports once, the newest first, also those of one millisecond', async () => {
    const orders = Array.from({ length: 25 }, (_, at) =>
      orderBy(at % 2 === 0 ? 'ann' : 'bob', { createdMs: 1_000 + Math.floor(at / 10) }),
    )
    for (const order of orders) await store.create(order, 100)
    for (const user of [undefined, 'ann']) {
      const seen: string[] = []
      let after: string | undefined
      do {
        const page = await store.page({ user, after, limit: 4 })
        seen.push(...page.records.map(({ order }) => order.id))
        after = page.next
      } while (after !== undefined)
      const wanted = orders.filter((order) => user === undefined || order.user === user)
      const byTime = wanted.toSorted((a, b) => b.createdMs - a.createdMs || (a.id < b.id ? 1 : -1))
      assert.deepEqual(
        seen,
        byTime.map(({ id }) => id),
      )
    }
  })

  test('room is kept for others that have not ended only', async () => {
    const [one, two] = [orderBy('ann'), orderBy('ann')]
    for (const order of [one, two]) await store.create(order, 10)
    await store.space.reserve('spool', one.id, 5n)
    await store.space.reserve('spool', two.id, 7n)
    assert.equal(await store.space.reserved('spool', two.id), 5n)
    await store.change(one, { state: 'failed' })
    assert.equal(await store.space.reserved('spool', two.id), 0n)
  })

  test('a forgotten export leaves no key', async () => {
    const order = orderBy('ann')
    await store.create(order, 10)
    await store.forget(order)
    assert.equal(await store.find(order.id), undefined)
    assert.deepEqual((await store.page({ user: undefined, after: undefined, limit: 10 })).records, [])
    assert.equal(await store.liveOf({ user: 'ann' }), 0)
  })
})
