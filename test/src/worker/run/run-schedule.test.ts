// Runs of schedules become exports exactly once: with workers that race, a Redis that is killed, and runs that were
// missed.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { ExportRecord } from '../../../../src/gateway/export/export-record.ts'
import type { Schedule } from '../../../../src/gateway/export/schedule-store.ts'
import { putUser } from '../../../../src/shared/auth/edit-users-file.ts'
import { UNBOUNDED } from '../../../../src/shared/base/caller.ts'
import {
  runDueSchedules,
  runSchedule,
  type SchedulingParts,
} from '../../../../src/worker/run/run-schedule.ts'
import { type ScheduleStand, scheduleStand } from '../../../support/exports/schedule-stand.ts'
import { USER_PASSWORD } from '../../../support/suite-secrets.ts'

const HOUR_MS = 3_600_000
const FIRST_MS = Date.parse('2026-11-23T10:00:00Z')
const LAST_HOUR = 'TSBegin=-1h&TSEnd=now'

describe('schedules', () => {
  let stand: ScheduleStand
  let worker: SchedulingParts

  beforeEach(async () => {
    stand = await scheduleStand()
    worker = stand.open()
  })
  afterEach(() => stand[Symbol.asyncDispose]())

  /** Due at FIRST_MS, and every hour from then on. */
  async function hourly(more: Partial<Schedule> = {}): Promise<string> {
    const schedule: Schedule = {
      id: randomUUID(),
      user: 'ann',
      cron: '0 * * * *',
      cronZone: 'UTC',
      missed: 'makeup',
      query: LAST_HOUR,
      bounds: UNBOUNDED,
      createdMs: FIRST_MS - HOUR_MS,
      ...more,
    }
    return await worker.schedules.create(schedule, FIRST_MS)
  }

  /** The exports in the order of their creation. */
  async function exports(): Promise<readonly ExportRecord[]> {
    const { records } = await worker.store.page({ user: undefined, after: undefined, limit: 1_000 })
    return records.toSorted((a, b) => Number(beginOf(a) - beginOf(b)))
  }

  const beginOf = ({ order }: ExportRecord): bigint =>
    BigInt(new URLSearchParams(order.plan.query).get('TSBegin') ?? '-1')
  const endOf = ({ order }: ExportRecord): bigint =>
    BigInt(new URLSearchParams(order.plan.query).get('TSEnd') ?? '-1')
  const ns = (ms: number): bigint => BigInt(ms) * 1_000_000n

  test('a run waits until it is known which devices there are, and until there is one', async () => {
    const id = await hourly()
    const refusal = async () => {
      await runSchedule(worker, id, FIRST_MS)
      return (await worker.schedules.find(id))?.error?.code
    }
    worker.fleet.replace(worker.fleet.devices, { isComplete: false })
    assert.equal(await refusal(), 'discovery-pending')
    worker.fleet.replace([])
    assert.equal(await refusal(), 'no-device')
    assert.deepEqual(await exports(), [])
    stand.setDevices('d0', 'd1')
    await runSchedule(worker, id, FIRST_MS)
    assert.deepEqual((await exports())[0]?.order.plan.devices, ['d0', 'd1'])
  })

  test('nothing is ordered before a run is due', async () => {
    const id = await hourly()
    await runDueSchedules(worker, FIRST_MS - 1)
    await runSchedule(worker, id, FIRST_MS - 1)
    assert.deepEqual(await exports(), [])
  })

  test('a run is the last hour before its time, however late a worker comes, in the name of its user', async () => {
    const id = await hourly()
    await runSchedule(worker, id, FIRST_MS + 1_234)
    const [made, ...more] = await exports()
    assert.ok(made)
    assert.equal(more.length, 0)
    assert.deepEqual([beginOf(made), endOf(made)], [ns(FIRST_MS - HOUR_MS), ns(FIRST_MS)])
    assert.deepEqual([made.order.user, made.order.scheduleId, made.order.target], ['ann', id, 'local'])
    assert.notEqual(await worker.jobs.write.getJob(made.order.id), undefined, 'it is in the queue')
    const record = await worker.schedules.find(id)
    assert.deepEqual(
      [record?.lastMs, record?.lastExportId, record?.nextMs],
      [FIRST_MS, made.order.id, FIRST_MS + HOUR_MS],
    )
  })

  test('five missed runs are made up once each, without a gap, by two workers that look at the same moment', async () => {
    await hourly()
    const other = stand.open()
    const nowMs = FIRST_MS + 4 * HOUR_MS + 1
    const looks = [worker, other, worker, other].map((one) => runDueSchedules(one, nowMs))
    await Promise.all(looks)
    assert.deepEqual(
      (await exports()).map((made) => [beginOf(made), endOf(made)]),
      [0, 1, 2, 3, 4].map((hour) => [ns(FIRST_MS + (hour - 1) * HOUR_MS), ns(FIRST_MS + hour * HOUR_MS)]),
    )
  })

  test('of missed runs that are skipped the last one is ordered', async () => {
    const id = await hourly({ missed: 'skip' })
    const other = stand.open()
    const nowMs = FIRST_MS + 4 * HOUR_MS + 1
    await Promise.all([worker, other].map((one) => runSchedule(one, id, nowMs)))
    const made = await exports()
    assert.deepEqual(made.map(endOf), [ns(FIRST_MS + 4 * HOUR_MS)])
    assert.equal((await worker.schedules.find(id))?.nextMs, FIRST_MS + 5 * HOUR_MS)
  })

  test('a run that was not missed is ordered if missed ones are skipped', async () => {
    const id = await hourly({ missed: 'skip' })
    for (const hour of [0, 1, 2]) await runSchedule(worker, id, FIRST_MS + hour * HOUR_MS)
    assert.equal((await exports()).length, 3)
  })

  test('killing Redis while runs are ordered duplicates none of them, and loses none', async (t) => {
    const id = await hourly()
    const nowMs = FIRST_MS + 199 * HOUR_MS
    const { store } = worker
    const createRun = store.createRun.bind(store)
    const ordering = t.mock.method(store, 'createRun', async (...run: Parameters<typeof createRun>) => {
      const created = createRun(...run)
      // Whether or not it has been ordered by then.
      if (ordering.mock.callCount() === 20) await stand.redis.stop('SIGKILL')
      return await created
    })
    await assert.rejects(runSchedule(worker, id, nowMs), { code: 'scheduler-unavailable' })
    ordering.mock.restore()
    await stand.redis.start()
    const after = stand.open()
    await runSchedule(after, id, nowMs)
    assert.deepEqual(
      (await exports()).map(endOf),
      Array.from({ length: 200 }, (_, hour) => ns(FIRST_MS + hour * HOUR_MS)),
    )
  })

  test('more missed runs than are ordered at once follow at the next look', async () => {
    const id = await hourly({ cron: '* * * * *' })
    const nowMs = FIRST_MS + 1_001 * 60_000
    await runSchedule(worker, id, nowMs)
    assert.equal((await worker.schedules.find(id))?.nextMs, FIRST_MS + 1_000 * 60_000)
    await runSchedule(worker, id, nowMs)
    assert.equal((await worker.schedules.find(id))?.nextMs, FIRST_MS + 1_002 * 60_000)
  })

  test('a device that joins the fleet is exported from then on', async () => {
    const id = await hourly()
    await runSchedule(worker, id, FIRST_MS)
    stand.setDevices('d0', 'd1')
    await runSchedule(worker, id, FIRST_MS + HOUR_MS)
    assert.deepEqual(
      (await exports()).map(({ order }) => order.plan.devices),
      [['d0'], ['d0', 'd1']],
    )
  })

  test('a run that cannot be ordered is kept as an error, and later ones are ordered', async () => {
    const id = await hourly({ query: `${LAST_HOUR}&Device=gone` })
    await runSchedule(worker, id, FIRST_MS)
    const failed = await worker.schedules.find(id)
    assert.deepEqual([failed?.error?.code, failed?.lastMs], ['unknown-device', undefined])
    stand.setDevices('gone')
    await runSchedule(worker, id, FIRST_MS + HOUR_MS)
    assert.deepEqual((await exports()).map(endOf), [ns(FIRST_MS + HOUR_MS)])
    assert.equal((await worker.schedules.find(id))?.error, undefined)
  })

  test('a user who may not order any more has no runs', async () => {
    const id = await hourly()
    const ofNobody = await hourly({ user: 'nobody' })
    await putUser(stand.users, { name: 'ann', role: 'viewer' }, USER_PASSWORD)
    await runDueSchedules(worker, FIRST_MS)
    assert.deepEqual(await exports(), [])
    assert.equal((await worker.schedules.find(id))?.error?.code, 'insufficient-scope')
    assert.equal((await worker.schedules.find(ofNobody))?.error?.code, 'unauthenticated')
    await putUser(stand.users, { name: 'ann', role: 'user' }, USER_PASSWORD)
    await runDueSchedules(worker, FIRST_MS + HOUR_MS)
    assert.deepEqual(
      (await exports()).map(({ order }) => order.scheduleId),
      [id],
    )
  })

  test('a schedule of an earlier user of the name has no runs', async () => {
    const id = await hourly({ user: 'eve', createdMs: FIRST_MS - HOUR_MS })
    await putUser(stand.users, { name: 'eve', role: 'user', since: new Date(FIRST_MS) }, USER_PASSWORD)
    const own = await hourly({ user: 'eve', createdMs: FIRST_MS })
    await runDueSchedules(worker, FIRST_MS + HOUR_MS)
    assert.deepEqual(new Set((await exports()).map(({ order }) => order.scheduleId)), new Set([own]))
    assert.equal((await worker.schedules.find(id))?.error?.code, 'unauthenticated')
    assert.equal((await worker.schedules.find(own))?.error, undefined)
  })

  test('a removed schedule has no runs, and no worker is woken for it', async () => {
    const id = await hourly()
    const record = await worker.schedules.find(id)
    assert.ok(record)
    await worker.jobs.keepSchedule(id, record.schedule)
    await worker.schedules.remove(record.schedule)
    await runSchedule(worker, id, FIRST_MS)
    await runDueSchedules(worker, FIRST_MS)
    assert.deepEqual(await exports(), [])
    assert.equal(await worker.jobs.upkeep.getJobSchedulersCount(), 0)
  })

  test('a schedule that is removed while its run is being ordered makes no export of it', async () => {
    const id = await hourly()
    await runSchedule(worker, id, FIRST_MS)
    const [made] = await exports()
    const record = await worker.schedules.find(id)
    assert.ok(made && record)
    const [expectedMs, followingMs] = [record.nextMs, record.nextMs + HOUR_MS]
    const run = { scheduleId: id, expectedMs, nominalMs: expectedMs, followingMs }
    await worker.schedules.remove(record.schedule)
    const order = { ...made.order, id: randomUUID() }
    assert.equal(await worker.store.createRun(order, 100, worker.schedules.noteOf(run)), false)
    await worker.schedules.refuse(run, { code: 'unknown-device', detail: 'gone' }, true)
    assert.equal((await exports()).length, 1)
    assert.equal(await worker.schedules.find(id), undefined)
    assert.deepEqual(await worker.schedules.due(followingMs), [])
  })

  test('the wake-up of a worker is restored when Redis has lost it', async () => {
    const id = await hourly()
    assert.equal(await worker.jobs.upkeep.getJobSchedulersCount(), 0)
    await runDueSchedules(worker, FIRST_MS)
    const [scheduler] = await worker.jobs.upkeep.getJobSchedulers()
    assert.deepEqual([scheduler?.pattern, scheduler?.tz], ['0 * * * *', 'UTC'])
    assert.equal(scheduler?.template?.data?.scheduleId, id)
  })

  test('a daily run in the hour that comes twice is ordered once', async () => {
    const id = await hourly({ cron: '30 2 * * *', cronZone: 'Europe/Berlin', query: 'TSBegin=-1d&TSEnd=now' })
    const change = Date.parse('2026-10-25T00:30:00Z')
    const record = await worker.schedules.find(id)
    assert.ok(record)
    await worker.schedules.remove(record.schedule)
    await worker.schedules.create(record.schedule, change)
    // Some worker checks every quarter of an hour.
    for (let at = change; at < change + 4 * HOUR_MS; at += HOUR_MS / 4) await runSchedule(worker, id, at)
    assert.deepEqual((await exports()).map(endOf), [ns(change)])
    assert.equal((await worker.schedules.find(id))?.nextMs, Date.parse('2026-10-26T01:30:00Z'))
  })

  test('the same key is the same schedule, and the number of schedules per user is limited', async () => {
    const schedule = {
      user: 'ann',
      cron: '0 * * * *',
      cronZone: 'UTC',
      missed: 'skip',
      query: LAST_HOUR,
      bounds: UNBOUNDED,
    } as const
    const made = (idempotency?: { readonly key: string; readonly asked: string }) =>
      worker.schedules.create({ ...schedule, id: randomUUID(), createdMs: 0 }, FIRST_MS, idempotency)
    const key = { key: 'k', asked: 'this' }
    assert.equal(await made(key), await made(key))
    await assert.rejects(made({ ...key, asked: 'that' }), { code: 'idempotency-conflict' })
    for (let count = 1; count < 100; count += 1) await made()
    await assert.rejects(made(), { code: 'user-quota' })
    assert.equal((await worker.schedules.list('ann')).length, 100)
    assert.equal((await worker.schedules.list('bob')).length, 0)
  })
})

test('runs beyond the quota of their user wait until there is room', async () => {
  await using stand = await scheduleStand(2)
  const worker = stand.open()
  const schedule: Schedule = {
    id: randomUUID(),
    user: 'ann',
    cron: '0 * * * *',
    cronZone: 'UTC',
    missed: 'makeup',
    query: LAST_HOUR,
    bounds: UNBOUNDED,
    createdMs: 0,
  }
  const id = await worker.schedules.create(schedule, FIRST_MS)
  const nowMs = FIRST_MS + 2 * HOUR_MS
  await runSchedule(worker, id, nowMs)
  const full = await worker.schedules.find(id)
  assert.deepEqual([full?.error?.code, full?.nextMs], ['user-quota', nowMs])
  const [live = ''] = await worker.store.live()
  await worker.store.change({ id: live, user: 'ann' }, { state: 'cancelled' })
  await runDueSchedules(worker, nowMs)
  const later = await worker.schedules.find(id)
  assert.deepEqual([later?.error, later?.lastMs], [undefined, nowMs])
})
