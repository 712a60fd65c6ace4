// What keeps order among exports, over a real Redis and real folders.
import assert from 'node:assert/strict'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Job } from 'bullmq'
import type { UpkeepJob } from '../../../../src/export/export-jobs.ts'
import type { ExportOrder } from '../../../../src/export/export-order.ts'
import { Spool } from '../../../../src/export/files/spool.ts'
import type { ExportParts } from '../../../../src/export/run/export-parts.ts'
import { runUpkeep } from '../../../../src/export/worker/upkeep.ts'
import { scheduleStand } from '../../../support/exports/schedule-stand.ts'
import { storedOrder } from '../../../support/exports/stored-order.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const orderAt = (createdMs: number, target: string): ExportOrder =>
  storedOrder({ id: `00000000-0000-4000-8000-${String(createdMs).padStart(12, '0')}`, createdMs, target })

/** Names in the spool that no export has. */
const FOREIGN = ['lost+found', 'notes.txt', '.hidden', '00000000-0000-4000-8000-000000000009.old']

test('a target that is gone, or away, keeps the files of others no longer than they are to be kept', async () => {
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
