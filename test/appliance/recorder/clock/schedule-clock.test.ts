// When a row of the schedule is due, to the second.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ScheduleClock } from '../../../../appliance/recorder/clock/schedule-clock.ts'
import { captureConfigSchema } from '../../../../appliance/settings/capture-config.ts'
import { CAPTURE_DAYS } from '../../../../appliance/settings/schedule-rows.ts'

const DAY = Date.UTC(2026, 10, 20)
const { schedule } = captureConfigSchema.parse({
  schedule: [{ name: 'half', start: '09:30:30', stop: '09:31:30', zone: 'UTC', days: [...CAPTURE_DAYS] }],
})

async function clockAt() {
  let nowMs = DAY
  const clock = await ScheduleClock.open({
    rows: schedule,
    nowNs: () => BigInt(nowMs) * 1_000_000n,
    store: { skippedRun: async () => undefined, keepSkippedRun: async () => undefined },
  })
  return (hour: number, minute: number, second: number, ms = 0): string | undefined => {
    nowMs = DAY + ((hour * 60 + minute) * 60 + second) * 1_000 + ms
    return clock.due?.name
  }
}

test('a row that begins at half a minute is due from that second on, and no longer than it says', async () => {
  const dueAt = await clockAt()
  assert.equal(dueAt(9, 30, 0), undefined)
  assert.equal(dueAt(9, 30, 29, 999), undefined)
  assert.equal(dueAt(9, 30, 30), 'half')
  assert.equal(dueAt(9, 31, 29, 999), 'half')
  assert.equal(dueAt(9, 31, 30), undefined)
})

test('a clock that is set back makes it due again', async () => {
  const dueAt = await clockAt()
  assert.equal(dueAt(9, 31, 30), undefined)
  assert.equal(dueAt(9, 31, 0), 'half')
})
