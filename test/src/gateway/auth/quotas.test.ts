// Quotas of two gateways with one Redis.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { Quotas } from '../../../../src/gateway/auth/quotas.ts'
import { createLog } from '../../../../src/shared/base/log.ts'
import { eventually } from '../../../support/eventually.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'

const LOG = createLog('test', 'silent')
const ONE_STREAM = [{ holder: 'ann', streamsMax: 1 }]

describe('quotas', () => {
  let server: TempRedis
  let replicas: readonly [Quotas, Quotas]
  let keyPrefix: string
  before(async () => {
    server = await TempRedis.create()
  })
  after(() => server?.[Symbol.asyncDispose]())
  beforeEach(() => {
    keyPrefix = randomUUID()
    const options = { redis: { url: server.url }, keyPrefix, log: LOG }
    replicas = [new Quotas(options), new Quotas(options)]
  })
  afterEach(() => {
    for (const quotas of replicas) quotas[Symbol.dispose]()
  })

  test('of streams hold over all replicas, and a place is free at the end of its download', async () => {
    const [here, there] = replicas
    const first = await here.begin('a', ONE_STREAM)
    await assert.rejects(there.begin('b', ONE_STREAM), { code: 'stream-quota' })
    using _other = await there.begin('c', [{ holder: 'bob', streamsMax: 1 }])
    first[Symbol.dispose]()
    await eventually(
      () =>
        there.begin('b', ONE_STREAM).then(
          () => true,
          () => false,
        ),
      { message: 'the place is free' },
    )
  })

  test('of streams do not refuse a download that has its place already, and asks again', async () => {
    using _first = await replicas[0].begin('a', ONE_STREAM)
    using _again = await replicas[1].begin('a', ONE_STREAM)
    await assert.rejects(replicas[1].begin('b', ONE_STREAM), { code: 'stream-quota' })
  })

  test('of streams are never exceeded by many that come at once', async () => {
    const quotas = [{ holder: 'ann', streamsMax: 3 }]
    const begun = await Promise.allSettled(
      Array.from({ length: 50 }, (_, at) => replicas[at % 2 === 0 ? 0 : 1].begin(`r${at}`, quotas)),
    )
    const uses = begun.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    assert.equal(uses.length, 3)
    for (const use of uses) use[Symbol.dispose]()
  })

  test('of a token count for its user, too', async () => {
    const user = { holder: 'ann', streamsMax: 2 }
    const tokens = ['t1', 't2', 't3'].map((holder) => [user, { holder, streamsMax: 1 }])
    using _first = await replicas[0].begin('a', tokens[0] ?? [])
    await assert.rejects(replicas[0].begin('b', tokens[0] ?? []), { code: 'stream-quota' })
    using _second = await replicas[0].begin('c', tokens[1] ?? [])
    await assert.rejects(replicas[0].begin('d', tokens[2] ?? []), { code: 'stream-quota' })
  })

  test('of a gateway that died are free after a while', async () => {
    using _use = await replicas[0].begin('a', ONE_STREAM)
    const redis = new Redis(server.url)
    try {
      const key = `{${keyPrefix}:quota}:s:ann`
      const [, lapsesMs] = await redis.zrange(key, '0', '-1', 'WITHSCORES')
      const [seconds = ''] = await redis.time()
      const leftMs = Number(lapsesMs) - Number(seconds) * 1_000
      assert.ok(leftMs > 10_000 && leftMs <= 16_000, `${leftMs} ms`)
      await redis.zadd(key, 0, 'a')
      using _next = await replicas[1].begin('b', ONE_STREAM)
    } finally {
      redis.disconnect()
    }
  })

  test('of bytes cut what runs on any replica, and refuse what comes', async () => {
    const quotas = [{ holder: 'ann', bytesPerDay: 1_000 }]
    const uses = await Promise.all(replicas.map((replica, at) => replica.begin(`r${at}`, quotas)))
    for (const use of uses) use.sent(600)
    await Promise.all(uses.map(({ spent }) => spent.aborted || once(spent, 'abort')))
    for (const { spent } of uses) assert.equal(spent.reason.code, 'byte-quota')
    for (const use of uses) use[Symbol.dispose]()
    await assert.rejects(replicas[0].begin('later', quotas), { code: 'byte-quota' })
    await assert.rejects(replicas[0].add('export', quotas, 0), { code: 'byte-quota' })
  })

  test('of bytes are used up by their last byte', async () => {
    const quotas = [{ holder: 'ann', bytesPerDay: 1_000 }]
    await replicas[0].add('export', quotas, 999)
    await assert.rejects(replicas[1].add('export', quotas, 1), { code: 'byte-quota' })
  })

  test('of bytes also count a download whose slot lapsed because Redis was unreachable, and was taken', async () => {
    const quotas = [{ holder: 'ann', streamsMax: 1, bytesPerDay: 1_000 }]
    using use = await replicas[0].begin('a', quotas)
    const redis = new Redis(server.url)
    await redis.del(`{${keyPrefix}:quota}:s:ann`)
    redis.disconnect()
    using _other = await replicas[1].begin('b', quotas)
    use.sent(2_000)
    await once(use.spent, 'abort')
    assert.equal(use.spent.reason.code, 'byte-quota')
  })

  test('that no one has need no Redis', async () => {
    await server.stop()
    using use = await replicas[0].begin('a', [])
    use.sent(5)
    await replicas[0].add('b', [], 5)
    await assert.rejects(replicas[0].begin('c', ONE_STREAM), { code: 'scheduler-unavailable' })
    await server.start()
  })
})
