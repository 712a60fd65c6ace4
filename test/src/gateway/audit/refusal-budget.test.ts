import assert from 'node:assert/strict'
import { test } from 'node:test'
import { downloadBy, tempAudit } from '../../../support/access/temp-audit.ts'

const DAY_MS = 86_400_000
const refusalBy = (user: string) => ({
  ...downloadBy(user, { path: '/v1/x', query: 'x'.repeat(500) }),
  event: 'access.refused' as const,
})

test('refusals take what the setting allows per day, and everything else is written as well', async () => {
  await using audit = await tempAudit()
  let nowMs = Date.UTC(2026, 10, 26, 12)
  await using log = await audit.open({ refusalBytesPerDay: 10_000 }, () => new Date(nowMs))
  for (let turn = 0; turn < 1_000; turn += 1) await log.recordRefusal(refusalBy('viewer'))
  await log.record(downloadBy('ann'))
  const entries = await audit.entries()
  const refusals = entries.filter(({ event }) => event === 'access.refused')
  const bytes = refusals.reduce((sum, entry) => sum + JSON.stringify(entry).length + 1, 0)
  assert.ok(bytes > 5_000 && bytes <= 10_000, String(bytes))
  assert.equal(entries.at(-1)?.event, 'download.begin')
  nowMs += DAY_MS
  await log.recordRefusal(refusalBy('viewer'))
  assert.equal(
    (await audit.entries()).at(-1)?.event,
    'access.refused',
    'the next day has a budget of its own',
  )
})

test('refusals leave the reserve of the disk to all other lines', async () => {
  await using audit = await tempAudit()
  await using log = await audit.open({ reserveBytes: 2 ** 50 })
  await log.recordRefusal(refusalBy('viewer'))
  await log.record(downloadBy('ann'))
  assert.deepEqual(
    (await audit.entries()).map(({ event }) => event),
    ['audit.opened', 'download.begin'],
  )
})
