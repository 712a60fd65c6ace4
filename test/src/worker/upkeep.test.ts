// The cleanup of exports, with a real Redis and real folders.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Job } from 'bullmq'
import type { UpkeepJob } from '../../../src/gateway/export/export-jobs.ts'
import type { ExportOrder } from '../../../src/gateway/export/export-order.ts'
import type { ExportParts } from '../../../src/gateway/export/export-parts.ts'
import { Spool } from '../../../src/gateway/export/spool.ts'
import { UNBOUNDED } from '../../../src/shared/base/caller.ts'
import { createLog } from '../../../src/shared/base/log.ts'
import { CLOCK_DISTRUSTS, type SharedTime } from '../../../src/shared/base/shared-time.ts'
import { Sweeps } from '../../../src/worker/sweeps.ts'
import { runUpkeep } from '../../../src/worker/upkeep.ts'
import { scheduleStand } from '../../support/exports/schedule-stand.ts'
import { storedOrder } from '../../support/exports/stored-order.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const orderAt = (createdMs: number, target: string): ExportOrder =>
  storedOrder({ id: `00000000-0000-4000-8000-${String(createdMs).padStart(12, '0')}`, createdMs, target })

/** Names in the spool that belong to no export. */
const FOREIGN = ['lost+found', 'notes.txt', '.hidden', '00000000-0000-4000-8000-000000000009.old']

test('a target that is gone, or unreachable, keeps the files of others no longer than configured', async () => {
  await using stand = await scheduleStand()
  await using folder = await tempFolder()
  const opened = stand.open()
  const spool = new Spool(folder.path)
  const limits = { keepBytes: undefined }
  const parts = { ...opened, spool, limits } as unknown as ExportParts
  const { store, targets } = opened
  await targets.get('local')?.check()
  const [oldest, gone, left] = [orderAt(1, 'local'), orderAt(2, 'gone'), orderAt(3, 'gone')]
  for (const order of [oldest, gone, left]) {
    await store.create(order, 10)
    await store.change(order, { state: 'complete', endedMs: 1, expiresMs: 1 })
  }
  const unknown = orderAt(4, 'local').id
  for (const id of [left.id, unknown, `${unknown}.result`]) await mkdir(join(folder.path, id))
  for (const name of FOREIGN) await mkdir(join(folder.path, name))
  await runUpkeep(parts, { name: 'sweep', data: {} } as Job<UpkeepJob>)
  assert.equal(await store.find(oldest.id), undefined)
  assert.notEqual(await store.find(gone.id), undefined, 'its files are still where its target was')
  assert.deepEqual((await readdir(folder.path)).sort(), [left.id, ...FOREIGN].sort())
})

describe('while the time is not trusted', () => {
  const DAY_MS = 86_400_000
  const sweep = { name: 'sweep', data: {} } as Job<UpkeepJob>

  test('no export expires, no run of a schedule is ordered; what a user has removed goes', async () => {
    await using stand = await scheduleStand()
    await using folder = await tempFolder()
    const opened = stand.open()
    const { store, schedules, targets } = opened
    await targets.get('local')?.check()
    const partsAt = (clock: SharedTime) =>
      ({
        ...opened,
        clock,
        spool: new Spool(folder.path),
        limits: { keepBytes: undefined },
      }) as unknown as ExportParts
    const nowMs = Date.now()
    const [kept, removed] = [orderAt(1, 'local'), orderAt(2, 'local')]
    for (const order of [kept, removed]) {
      await store.create(order, 10)
      await store.change(order, { state: 'complete', endedMs: nowMs, expiresMs: nowMs + DAY_MS })
    }
    await store.change(removed, { expiresMs: nowMs, isRemoved: true })
    const schedule = {
      id: randomUUID(),
      user: 'bob',
      cron: '0 * * * *',
      cronZone: 'UTC',
      missed: 'makeup',
      query: 'TSBegin=-1h&TSEnd=now',
      bounds: UNBOUNDED,
      createdMs: nowMs,
    } as const
    await schedules.create(schedule, nowMs + 60_000)
    const run = { name: 'schedule', data: { scheduleId: schedule.id } } as Job<UpkeepJob>
    for (const distrust of CLOCK_DISTRUSTS) {
      // A host that is ten days ahead: everything that it could do wrong is due.
      const parts = partsAt({ nowMs: () => nowMs + 10 * DAY_MS, distrust })
      await runUpkeep(parts, run)
      await runUpkeep(parts, sweep)
      assert.notEqual(await store.find(kept.id), undefined, distrust)
      assert.equal(await store.find(removed.id), undefined)
      assert.equal((await schedules.find(schedule.id))?.nextMs, nowMs + 60_000)
    }
    await runUpkeep(partsAt({ nowMs: () => nowMs + 120_000, distrust: undefined }), sweep)
    assert.notEqual((await schedules.find(schedule.id))?.lastExportId, undefined, 'it is made up for')
    await runUpkeep(partsAt({ nowMs: () => nowMs + 2 * DAY_MS, distrust: undefined }), sweep)
    assert.equal(await store.find(kept.id), undefined)
  })
})

test('sweeps are ordered if there was none for a while, by any worker that checks', async () => {
  await using stand = await scheduleStand()
  const { jobs, store } = stand.open()
  const log = createLog('test', 'silent')
  const sweeps = [1, 2].map(() => new Sweeps({ workers: store.workers, jobs, log, everyMs: 3_600_000 }))
  const taken = async () => {
    const there = await jobs.upkeep.getJob('sweep')
    await there?.remove()
    if (there !== undefined) await store.workers.countSweep()
    return there !== undefined
  }
  const [one, other] = sweeps
  await one?.start()
  await other?.start()
  assert.equal(await taken(), true)
  for (const each of sweeps) await each.look()
  assert.equal(await taken(), false, 'one has swept since they looked')
  for (const each of sweeps) await each.look()
  assert.equal(await taken(), true)
  for (const each of sweeps) await each[Symbol.asyncDispose]()
})
