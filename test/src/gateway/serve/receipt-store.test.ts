// Receipts while Redis is away, and receipts of a gateway that died.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Redis } from 'ioredis'
import type { StoredReceipt } from '../../../../src/gateway/serve/receipt.ts'
import { ReceiptStore } from '../../../../src/gateway/serve/receipt-store.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import type { Log } from '../../../../src/shared/base/log.ts'
import { eventually } from '../../../support/eventually.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'

const DAY_S = 86_400
const PER_USER_MAX = 300
const quiet = () => undefined
const log: Log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
let redis: TempRedis

before(async () => {
  redis = await TempRedis.create()
})
after(() => redis[Symbol.asyncDispose]())

const open = (refreshMs = 10_000) =>
  new ReceiptStore({
    redis: { url: redis.url },
    keyPrefix: 'capfleet',
    perUserMax: PER_USER_MAX,
    log,
    refreshMs,
  })

function receipt(id: string, status: StoredReceipt['status'], user = 'analyst'): StoredReceipt {
  return { id, status, user, bytes: '5' } as StoredReceipt
}

async function untilWritten(store: ReceiptStore): Promise<void> {
  await eventually(() => store.pending === 0, { message: 'all receipts are in Redis' })
}

test('is found by another gateway, and goes after a day', async () => {
  await using one = open()
  await using other = open()
  one.save(receipt('a', 'complete'))
  await untilWritten(one)
  assert.equal((await other.find('a'))?.status, 'complete')
  assert.equal(await other.find('b'), undefined)
  const client = new Redis(redis.url)
  const leftS = await client.ttl('{capfleet}:req:a')
  client.disconnect()
  assert.ok(leftS > DAY_S - 60 && leftS <= DAY_S)
})

test('a running download has failed when its receipt has missed four updates, not three', async () => {
  await using store = open()
  await using other = open()
  store.save(receipt('silent', 'streaming'))
  await untilWritten(store)
  const client = new Redis(redis.url)
  for (const [ageMs, status] of [
    [30_000, 'streaming'],
    [40_000, 'failed'],
  ] as const) {
    await client.pexpire('{capfleet}:req:silent', DAY_S * 1_000 - ageMs)
    assert.equal((await other.find('silent'))?.status, status)
  }
  client.disconnect()
})

test('while Redis is unreachable: known here, kept, and written when it is back', async () => {
  await using store = open()
  await using other = open()
  assert.equal(await store.find('x'), undefined)
  await redis.stop('SIGKILL')
  try {
    for (let number = 0; number < 250; number += 1) store.save(receipt(`away-${number}`, 'complete'))
    assert.equal((await store.find('away-3'))?.status, 'complete')
    await assert.rejects(
      store.find('elsewhere'),
      (error) => error instanceof CapfleetError && error.code === 'scheduler-unavailable',
    )
    assert.equal(store.pending, 250)
  } finally {
    await redis.start()
  }
  await untilWritten(store)
  assert.equal((await other.find('away-0'))?.status, 'complete')
  assert.equal((await other.find('away-249'))?.status, 'complete')
})

test('of a user the newest are kept, however many downloads there were', async () => {
  await using store = open()
  store.save(receipt('of-another', 'complete', 'operator'))
  for (let number = 0; number < PER_USER_MAX + 50; number += 1)
    store.save(receipt(`many-${number}`, 'failed', 'busy'))
  // A receipt that is written again does not count twice.
  for (let number = 300; number < 350; number += 1) store.save(receipt(`many-${number}`, 'complete', 'busy'))
  await untilWritten(store)
  const kept = [49, 50, 349].map(async (number) => (await store.find(`many-${number}`))?.status)
  assert.deepEqual(await Promise.all(kept), [undefined, 'failed', 'complete'])
  assert.equal((await store.find('of-another'))?.status, 'complete')
})

test('of a user are listed, the newest first, those that run too', async () => {
  await using one = open()
  await using other = open()
  const at = (id: string, startedAt: string) => ({ ...receipt(id, 'complete', 'lister'), startedAt })
  one.save(at('first', '2026-11-24T00:00:01Z'))
  one.save(at('second', '2026-11-24T00:00:02Z'))
  one.save(receipt('of-others', 'complete', 'somebody'))
  await untilWritten(one)
  const idsOf = async (store: ReceiptStore, most: number) =>
    (await store.list('lister', most)).map(({ id }) => id)
  assert.deepEqual(await idsOf(one, 1), ['second'])
  assert.deepEqual(await idsOf(one, 10), ['second', 'first'])
  other.watch('third', () => ({ ...at('third', '2026-11-24T00:00:03Z'), status: 'streaming' }))
  assert.deepEqual(await idsOf(other, 10), ['third', 'second', 'first'])
  assert.deepEqual(await idsOf(other, 2), ['third', 'second'])
})

test('while Redis is unreachable at most 16 Mi characters of receipts wait for it', async () => {
  const lost: unknown[] = []
  await using store = new ReceiptStore({
    redis: { url: '/nowhere/redis.sock' },
    keyPrefix: 'capfleet',
    perUserMax: PER_USER_MAX,
    log: { ...log, error: (_event, fields) => lost.push(fields?.requestId) },
  })
  const long = (id: string) => ({ ...receipt(id, 'failed'), path: 'x'.repeat(1_048_576) })
  for (let number = 0; number < 20; number += 1) store.save(long(`long-${number}`))
  assert.deepEqual(
    [store.pending, lost.slice(0, 5)],
    [15, ['long-0', 'long-1', 'long-2', 'long-3', 'long-4']],
  )
  assert.equal((await store.find('long-19'))?.status, 'failed')
})

test('the newest state wins, however fast it changes', async () => {
  await using store = open()
  store.watch('fast', () => receipt('fast', 'streaming'))
  store.save(receipt('fast', 'client-gone'))
  await untilWritten(store)
  await using other = open()
  assert.equal((await other.find('fast'))?.status, 'client-gone')
})

test('a download that ends at once is written once', async () => {
  await using store = open()
  const client = new Redis(redis.url)
  await client.config('RESETSTAT')
  store.watch('short', () => receipt('short', 'streaming'))
  await client.ping()
  store.save(receipt('short', 'complete'))
  await untilWritten(store)
  const stats = await client.info('commandstats')
  client.disconnect()
  assert.equal(/^cmdstat_set:calls=(\d+),/m.exec(stats)?.[1], '1')
})

test('a receipt that comes when the store has ended is lost, and holds nothing up', async () => {
  const lost: unknown[] = []
  const store = new ReceiptStore({
    redis: { url: redis.url },
    keyPrefix: 'capfleet',
    perUserMax: PER_USER_MAX,
    log: { ...log, error: (event, fields) => lost.push([event, fields?.requestId]) },
  })
  await store[Symbol.asyncDispose]()
  store.save(receipt('late', 'client-gone'))
  assert.deepEqual([store.pending, lost], [0, [['receipt.lost', 'late']]])
})

test('a download that has just begun is visible to others before the end of its gateway', async () => {
  const store = open()
  store.watch('begun', () => receipt('begun', 'streaming'))
  await store[Symbol.asyncDispose]()
  await using other = open()
  assert.equal((await other.find('begun'))?.status, 'streaming')
})

test('a running download stays streaming for others; without its gateway it is reported as failed', async () => {
  const refreshMs = 100
  await using other = open(refreshMs)
  await using store = open(refreshMs)
  let asked = 0
  store.watch('running', () => {
    asked += 1
    return receipt('running', 'streaming')
  })
  await eventually(() => asked > 6, { message: 'the receipt is brought up to date' })
  assert.equal((await other.find('running'))?.status, 'streaming')
  await store[Symbol.asyncDispose]()
  await eventually(async () => (await other.find('running'))?.status === 'failed', {
    message: 'the loss of the gateway shows',
  })
  assert.equal((await other.find('running'))?.error?.code, 'replica-lost')
})
