import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, beforeEach, describe, test } from 'node:test'
import { Redis } from 'ioredis'
import { Revocations } from '../../../../src/gateway/auth/revocations.ts'
import { type IssuedToken, TokenStore } from '../../../../src/gateway/auth/token-store.ts'
import { UNBOUNDED } from '../../../../src/shared/base/caller.ts'
import type { Log } from '../../../../src/shared/base/log.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { eventually } from '../../../support/eventually.ts'
import { pause } from '../../../support/pause.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'
import { TRUSTED_TIME } from '../../../support/trusted-time.ts'

const NOTHING = () => undefined
const LOG: Log = { debug: NOTHING, info: NOTHING, warn: NOTHING, error: NOTHING }
const HOUR_MS = 3_600_000

function tokenOf(user: string, livesMs = HOUR_MS): IssuedToken {
  const nowMs = Date.now()
  const given = { scopes: ['device:read'], bounds: UNBOUNDED, parents: [], note: undefined } as const
  return { kind: 'token', id: randomUUID(), user, ...given, createdMs: nowMs, expiresMs: nowMs + livesMs }
}

describe('issued tokens in Redis', () => {
  let redis: TempRedis
  let store: TokenStore
  let commands: Redis
  before(async () => {
    redis = await TempRedis.create()
    store = new TokenStore({ redis: { url: redis.url }, keyPrefix: 'test', log: LOG })
    commands = new Redis(redis.url)
    commands.on('error', NOTHING)
  })
  after(async () => {
    store[Symbol.dispose]()
    commands.disconnect()
    await redis[Symbol.asyncDispose]()
  })
  beforeEach(() => commands.flushall())

  const start = () => Revocations.start({ store, clock: TRUSTED_TIME, metrics: new Metrics(), log: LOG })

  test('are found until they expire, and leave nothing then', async () => {
    const token = tokenOf('ann')
    await store.keep(token)
    const { note: _none, ...kept } = token
    assert.deepEqual(await store.find(token.id), { ...kept, revokedMs: undefined })
    assert.deepEqual(
      (await store.list('ann')).map(({ id }) => id),
      [token.id],
    )
    assert.deepEqual(await store.list('bob'), [])
    for (const id of ['', 'x', '*', randomUUID()]) assert.equal(await store.find(id), undefined)
    for (const key of await commands.keys('*'))
      if (!key.endsWith(':all')) assert.ok((await commands.pttl(key)) > 0, key)
    const short = tokenOf('bob', 30)
    await store.keep(short)
    const isGone = async () => (await store.find(short.id)) === undefined
    await eventually(isGone, { message: 'it expires' })
    assert.deepEqual(await store.list('bob'), [])
  })

  test('are a thousand of one user at most; those that have expired make room', async () => {
    await Promise.all(Array.from({ length: 999 }, () => store.keep(tokenOf('ann'))))
    const last = tokenOf('ann')
    await store.keep(last)
    await assert.rejects(store.keep(tokenOf('ann')), { code: 'user-quota' })
    await store.keep(tokenOf('bob'))
    // Its time has come, whatever the machine's clock says.
    for (const key of await commands.keys('*'))
      if ((await commands.type(key)) === 'zset') await commands.zadd(key, 'XX', 1, last.id)
    await store.keep(tokenOf('ann'))
  })

  test('that are made by tokens leave room for those that are made by password', async () => {
    const byToken = () => ({ ...tokenOf('ann'), parents: [randomUUID()] })
    await Promise.all(Array.from({ length: 900 }, () => store.keep(byToken())))
    await assert.rejects(store.keep(byToken()), { code: 'user-quota' })
    await store.keep(tokenOf('ann'))
  })

  test('are announced once when they are revoked, and all again when Redis has lost its data', async () => {
    const [one, two] = [tokenOf('ann'), tokenOf('ann')]
    for (const token of [one, two]) await store.keep(token)
    await store.revoke(one)
    await store.revoke(one)
    const first = await store.revokedSince(0)
    assert.deepEqual(first.revoked, [{ id: one.id, expiresMs: one.expiresMs }])
    assert.deepEqual((await store.revokedSince(first.look)).revoked, [])
    await store.revoke(two)
    assert.deepEqual(
      (await store.revokedSince(first.look)).revoked.map(({ id }) => id),
      [two.id],
    )
    assert.equal(typeof (await store.find(two.id))?.revokedMs, 'number')
    await commands.flushall()
    const third = tokenOf('ann')
    await store.keep(third)
    await store.revoke(third)
    assert.deepEqual(
      (await store.revokedSince(5)).revoked.map(({ id }) => id),
      [third.id],
    )
  })

  test('are also announced when as many were revoked since Redis lost its data', async () => {
    const [lost, next] = [tokenOf('ann'), tokenOf('ann')]
    await store.keep(lost)
    await store.revoke(lost)
    const { look } = await store.revokedSince(0)
    await pause(5, 'looks are told apart by the millisecond')
    await commands.flushall()
    await store.keep(next)
    await store.revoke(next)
    assert.deepEqual(
      (await store.revokedSince(look)).revoked.map(({ id }) => id),
      [next.id],
    )
  })

  test('are revoked for a gateway that starts after Redis has lost what it had, where another one knew them', async () => {
    const [lost, next, expired] = [tokenOf('ann'), tokenOf('ann'), { id: randomUUID(), expiresMs: 1 }]
    await store.keep(lost)
    await store.revoke(lost)
    await using knows = await start()
    await commands.flushall()
    knows.add(expired)
    await store.keep(next)
    await store.revoke(next)
    await eventually(async () => (await store.revokedSince(0)).inAll === 2, { message: 'both are in Redis' })
    await using later = await start()
    for (const one of [knows, later]) assert.deepEqual([one.has(lost.id), one.has(next.id)], [true, true])
    assert.equal(later.has(expired.id), false)
    const { look } = await store.revokedSince(0)
    await store.restore([lost, next])
    assert.deepEqual(
      await store.revokedSince(look),
      { look, inAll: 2, revoked: [] },
      'they are there already',
    )
  })

  test('revoking a missing or expired token has no effect', async () => {
    await store.revoke(tokenOf('ann'))
    assert.deepEqual((await store.revokedSince(0)).revoked, [])
  })

  test('known revocations stay valid while Redis is unreachable', async () => {
    const [before, meanwhile] = [tokenOf('ann'), tokenOf('ann')]
    for (const token of [before, meanwhile]) await store.keep(token)
    await store.revoke(before)
    const metrics = new Metrics()
    await using revocations = await Revocations.start({ store, clock: TRUSTED_TIME, metrics, log: LOG })
    const { id, expiresMs } = meanwhile
    const signal = revocations.signalOf(id, expiresMs)
    await redis.stop('SIGKILL')
    await assert.rejects(store.find(before.id), { code: 'scheduler-unavailable' })
    assert.ok(revocations.has(before.id) && !revocations.has(id))
    await redis.start()
    await eventually(
      () =>
        store.revoke(meanwhile).then(
          () => true,
          () => false,
        ),
      { message: 'Redis is back' },
    )
    await eventually(() => signal.aborted, { message: 'the next look tells' })
    assert.match(await metrics.text(), /capfleet_token_revocations 2/)
  })
})
