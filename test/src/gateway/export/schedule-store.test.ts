import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { Schedule } from '../../../../src/gateway/export/schedule-store.ts'
import { UNBOUNDED } from '../../../../src/shared/base/caller.ts'
import { scheduleStand } from '../../../support/exports/schedule-stand.ts'

const PER_USER_MAX = 100
const RULE = { cron: '0 4 * * *', cronZone: 'UTC', missed: 'skip' } as const

function newSchedule(more: Partial<Schedule> = {}): Schedule {
  const query = 'TSBegin=-1h&TSEnd=now'
  return { ...RULE, id: randomUUID(), user: 'ann', query, bounds: UNBOUNDED, createdMs: Date.now(), ...more }
}

test('a schedule that is sent again, because its answer was lost, is the same one, also when it is the last possible', async () => {
  await using stand = await scheduleStand()
  const { schedules } = stand.open()
  for (let number = 1; number < PER_USER_MAX; number += 1) await schedules.create(newSchedule(), 1)
  const last = newSchedule()
  for (const _sent of ['once', 'again']) assert.equal(await schedules.create(last, 1), last.id)
  await assert.rejects(schedules.create(newSchedule(), 1), { code: 'user-quota' })
})

test('schedules of an earlier user of the name take no room', async () => {
  await using stand = await scheduleStand()
  const { schedules } = stand.open()
  const userSinceMs = Date.now()
  for (let number = 0; number < PER_USER_MAX; number += 1)
    await schedules.create(newSchedule({ createdMs: userSinceMs - 1 }), 1)
  const own = { userSinceMs, createdMs: userSinceMs }
  for (let number = 0; number < PER_USER_MAX; number += 1) await schedules.create(newSchedule(own), 1)
  await assert.rejects(schedules.create(newSchedule(own), 1), {
    code: 'user-quota',
    message: /^you have 100 schedules/,
  })
})
