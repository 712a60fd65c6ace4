// All keys of exports and schedules are in one slot of a Redis Cluster, which rejects commands that span several slots.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { ExportStore } from '../../../../src/gateway/export/export-store.ts'
import { ScheduleStore } from '../../../../src/gateway/export/schedule-store.ts'
import { UNBOUNDED } from '../../../../src/shared/base/caller.ts'
import { createLog } from '../../../../src/shared/base/log.ts'
import { storedOrder } from '../../../support/exports/stored-order.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'

const newOrder = () => storedOrder({ id: randomUUID(), target: 'local' })

test('exports and schedules are ordered, run, changed and forgotten on a Redis Cluster', async () => {
  await using redis = await TempRedis.createCluster()
  const options = { redis: { url: redis.url }, keyPrefix: 'test', log: createLog('test', 'silent') }
  await using store = new ExportStore(options)
  await using schedules = new ScheduleStore(options)
  const [plain, keyed, run] = [newOrder(), newOrder(), newOrder()]
  assert.equal(await store.create(plain, 10), plain.id)
  for (const order of [keyed, newOrder()])
    assert.equal(await store.create(order, 10, { key: 'k', asked: 'a' }), keyed.id)

  const rule = { cron: '0 4 * * *', cronZone: 'UTC', missed: 'skip', query: '', bounds: UNBOUNDED } as const
  const schedule = { ...rule, id: randomUUID(), user: 'ann', createdMs: 1 }
  assert.equal(await schedules.create(schedule, 1), schedule.id)
  const due = { scheduleId: schedule.id, expectedMs: 1, nominalMs: 1, followingMs: 2 }
  assert.equal(await store.createRun(run, 10, schedules.noteOf(due)), true)
  assert.equal((await schedules.find(schedule.id))?.lastExportId, run.id)
  await schedules.refuse({ ...due, expectedMs: 2 }, { code: 'unknown-device', detail: 'gone' }, true)
  assert.equal((await schedules.find(schedule.id))?.error?.code, 'unknown-device')
  await schedules.remove(schedule)

  assert.equal(await store.liveOf(plain), 3)
  for (const order of [plain, keyed, run]) {
    assert.equal((await store.change(order, { state: 'complete' })).state, 'complete')
    await store.forget(order)
  }
  assert.deepEqual((await store.page({ user: 'ann', after: undefined, limit: 10 })).records, [])
})
