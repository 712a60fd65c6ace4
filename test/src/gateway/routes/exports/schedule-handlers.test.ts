// Schedules over a real gateway and a real worker: which are accepted, which are rejected, who sees them, and what they
// order.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { ScheduleStore } from '../../../../../src/gateway/export/schedule-store.ts'
import { UNBOUNDED } from '../../../../../src/shared/base/caller.ts'
import type { Log } from '../../../../../src/shared/base/log.ts'
import { eventually } from '../../../../support/eventually.ts'
import { type HttpAnswer, httpGet } from '../../../../support/http-get.ts'
import { type SmallFleet, startSmallFleet } from '../../../../support/processes/small-fleet.ts'
import { startTempWorker } from '../../../../support/processes/temp-worker.ts'

const HOUR_MS = 3_600_000
const HOURLY = 'Cron=5+*+*+*+*&TSBegin=-1h&TSEnd=now'
const NOTHING = () => undefined
const LOG: Log = { debug: NOTHING, info: NOTHING, warn: NOTHING, error: NOTHING }

describe('schedules at the gateway', () => {
  let fleet: SmallFleet
  before(async () => {
    fleet = await startSmallFleet()
  })
  after(() => fleet[Symbol.asyncDispose]())

  type Role = 'viewer' | 'user' | 'full'

  function ask(
    method: string,
    path: string,
    { as = 'user', headers = {} }: { readonly as?: Role; readonly headers?: Record<string, string> } = {},
  ): Promise<HttpAnswer> {
    const { url, as: users } = fleet.gateway
    return httpGet(url + path, { method, headers: { ...users[as], ...headers } })
  }
  const order = (query: string, options?: Parameters<typeof ask>[2]) =>
    ask('POST', `/v1/schedules?${query}`, options)

  test('are kept as given, and show their next run', async () => {
    const query = 'TSBegin=-1h&TSEnd=now&Device=ea*&FilterFrame=capture.port%20==%203&PartTime=15m'
    const made = await order(`Cron=0+*+*+*+*&${query}&CronZone=berlin&Missed=skip`)
    assert.equal(made.status, 201, made.body.toString())
    assert.equal(made.headers['capfleet-ignored'], undefined)
    const schedule = made.json()
    const { id, createdAt, nextAt, ...rest } = schedule
    assert.equal(made.headers.location, `/v1/schedules/${id}`)
    assert.deepEqual(rest, {
      user: 'user',
      cron: '0 * * * *',
      cronZone: 'Europe/Berlin',
      missed: 'skip',
      kind: 'timerange',
      query,
      lastAt: null,
      lastExportId: null,
      error: null,
    })
    const nextMs = Date.parse(String(nextAt))
    assert.equal(nextMs % HOUR_MS, 0)
    assert.ok(nextMs > Date.parse(String(createdAt)))
    assert.ok(nextMs - Date.parse(String(createdAt)) <= HOUR_MS)
    assert.deepEqual((await ask('GET', `/v1/schedules/${id}`)).json(), schedule)
  })

  test('keep the devices of the header as those of the parameter', async () => {
    const headers = { 'capfleet-device': 'east,we*' }
    assert.equal((await order(HOURLY, { headers })).json().query, 'TSBegin=-1h&TSEnd=now&Device=east%2Cwe*')
    assert.equal((await order(`${HOURLY}&Device=east`, { headers })).status, 400)
  })

  for (const [what, query, param] of [
    ['no cron', 'TSBegin=-1h&TSEnd=now', 'Cron'],
    ['six fields', 'Cron=0+0+*+*+*+*&TSBegin=-1h&TSEnd=now', 'Cron'],
    ['a day that never comes', 'Cron=0+0+30+2+*&TSBegin=-1h&TSEnd=now', 'Cron'],
    ['another word than makeup and skip', `${HOURLY}&Missed=all`, 'Missed'],
    ['a begin that stays', 'Cron=5+*+*+*+*&TSBegin=20261123_100000&TSEnd=now', 'TSBegin'],
    ['an end that stays', `Cron=5+*+*+*+*&TSBegin=-1h&TSEnd=${2n ** 60n}`, 'TSEnd'],
    ['nothing between begin and end', 'Cron=5+*+*+*+*&TSBegin=now&TSEnd=now', 'TSBegin'],
    ['an end before the start', 'Cron=5+*+*+*+*&TSBegin=-1h&TSEnd=-2h', 'TSBegin'],
    ['times of a dashboard', 'Cron=5+*+*+*+*&from=1790000000000&to=1790000000001', 'from'],
    ['a capture', 'Cron=5+*+*+*+*&StreamName=east-first', 'StreamName'],
    ['a target that is not there', `${HOURLY}&Target=moon`, 'Target'],
    ['too many files', `${HOURLY.replace('-1h', '-300d')}&PartTime=1s`, 'PartTime'],
    ['a name in another case', `${HOURLY}&missed=skip`, 'missed'],
    ['a name that nobody knows, with Strict', `${HOURLY}&Odd=1&Strict=1`, 'Odd'],
  ] as const)
    test(`are refused with ${what}`, async () => {
      const refused = await order(query)
      assert.deepEqual([refused.status, refused.json().code], [400, 'bad-parameter'], refused.body.toString())
      assert.equal(refused.json().param, param)
    })

  for (const [code, query] of [
    ['bad-timezone', `${HOURLY}&CronZone=Nowhere`],
    ['bad-bpf', `${HOURLY}&FilterBPF=nonsense`],
    ['unknown-device', `${HOURLY}&Device=north`],
  ] as const)
    test(`are refused with ${code}`, async () => assert.equal((await order(query)).json().code, code))

  test('are ordered by users, and seen by theirs and the role full', async () => {
    assert.equal((await order(HOURLY, { as: 'viewer' })).status, 403)
    const { id } = (await order(HOURLY, { as: 'full' })).json()
    const seen = async (as: Role) =>
      ((await ask('GET', '/v1/schedules', { as })).json().schedules as { readonly id: string }[]).some(
        (one) => one.id === id,
      )
    assert.deepEqual([await seen('full'), await seen('user')], [true, false])
    for (const method of ['GET', 'DELETE']) {
      const hidden = await ask(method, `/v1/schedules/${id}`)
      assert.deepEqual([hidden.status, hidden.json().code], [404, 'unknown-schedule'])
    }
    assert.equal((await ask('DELETE', `/v1/schedules/${id}`, { as: 'full' })).status, 200)
    assert.equal((await ask('GET', `/v1/schedules/${id}`, { as: 'full' })).status, 404)
    assert.equal((await ask('GET', '/v1/schedules/..%2Fall')).json().code, 'unknown-schedule')
  })

  test('the same Idempotency-Key is the same schedule', async () => {
    const headers = { 'idempotency-key': 'nightly' }
    const first = (await order(HOURLY, { headers })).json()
    assert.deepEqual((await order(HOURLY, { headers })).json(), first)
    const other = await order(`${HOURLY}&Missed=skip`, { headers })
    assert.deepEqual([other.status, other.json().code], [409, 'idempotency-conflict'])
    assert.equal(other.json().scheduleId, first.id)
  })

  test('runs that were missed while no worker was there become exports as soon as one is', async () => {
    const { config } = fleet.gateway
    const redis = { url: config.redis.url ?? '' }
    await using schedules = new ScheduleStore({ redis, keyPrefix: config.redis.keyPrefix, log: LOG })
    const dueMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 2 * HOUR_MS
    const id = await schedules.create(
      {
        id: randomUUID(),
        user: 'user',
        cron: '0 * * * *',
        cronZone: 'UTC',
        missed: 'makeup',
        query: 'TSBegin=-1h&TSEnd=now&Device=east&Reason=night',
        bounds: UNBOUNDED,
        createdMs: dueMs - 1,
      },
      dueMs,
    )
    await using _worker = await startTempWorker(fleet.gateway)
    const ofSchedule = async () =>
      ((await ask('GET', '/v1/exports')).json().exports as Readonly<Record<string, unknown>>[]).filter(
        (made) => made.scheduleId === id,
      )
    await eventually(
      async () => (await ofSchedule()).filter(({ state }) => state === 'complete').length >= 3,
      { message: 'three exports are complete' },
    )
    const made = await ofSchedule()
    const begins = made.map(({ query }) => new URLSearchParams(String(query)).get('TSBegin')).sort()
    // The hour may have passed meanwhile.
    assert.deepEqual(
      begins.slice(0, 3),
      [-1, 0, 1].map((hour) => String(BigInt(dueMs + hour * HOUR_MS) * 1_000_000n)),
    )
    assert.equal(new Set(begins).size, begins.length, 'none of them twice')
    assert.deepEqual(
      made.map(({ reason }) => reason),
      made.map(() => 'night'),
    )
    const shown = (await ask('GET', `/v1/schedules/${id}`)).json()
    assert.ok(made.some((one) => one.id === shown.lastExportId))
    assert.equal(shown.error, null)
  })
})
