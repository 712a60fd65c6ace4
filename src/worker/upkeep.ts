/** The jobs that keep order: what is left of an export is removed, lost work is found, schedules are kept, files expire. */

import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Job } from 'bullmq'
import { spanJobId, type UpkeepJob } from '../gateway/export/export-jobs.ts'
import type { ExportOrder } from '../gateway/export/export-order.ts'
import { type ExportParts, Later } from '../gateway/export/export-parts.ts'
import { ENDED_STATES, type ExportRecord, keptCount, LIVE_STATES } from '../gateway/export/export-record.ts'
import { targetOf } from '../gateway/export/order-target.ts'
import { CapfleetError } from '../shared/base/error.ts'
import type { SharedTime } from '../shared/base/shared-time.ts'
import { releaseSpace } from './run/export-space.ts'
import { workFolder } from './run/publish-export.ts'
import { runDueSchedules, runSchedule } from './run/run-schedule.ts'
import type { JobTurn } from './working-queue.ts'

/** How long a job that is not wanted any more may take to notice. */
const NOTICE_MS = 500
/** An export that has ended badly is told of for so long. */
const ENDED_KEPT_MS = 86_400_000

export async function runUpkeep(parts: ExportParts, job: Job<UpkeepJob>): Promise<JobTurn> {
  const { exportId, scheduleId } = job.data
  if (job.name === 'clean' && exportId !== undefined) await clean(parts, exportId)
  // What is due while the time is not trusted is found by a later sweep.
  if (job.name === 'schedule' && scheduleId !== undefined && isTrusted(parts.clock))
    await runSchedule(parts, scheduleId, parts.clock.nowMs())
  if (job.name === 'sweep') {
    await sweep(parts)
    await parts.store.countSweep()
  }
  return 'done'
}

/**
 * Removes what an export that has ended has left in the spool and in the queues; of one without files, those that were
 * made too. Throws Later while a job of it still runs.
 */
async function clean(parts: ExportParts, exportId: string): Promise<void> {
  const record = await parts.store.find(exportId)
  if (record !== undefined && LIVE_STATES.includes(record.state)) return
  if (record !== undefined && (await parts.jobs.removeJobs(exportId, spanJobsOf(record))))
    throw new Later(NOTICE_MS)
  if (record === undefined) return await removeUnknown(parts, exportId)
  await releaseSpace(parts, record.order)
  if (record.isRemoved) return await removeExport(parts, record.order)
  await rm(workFolder(parts, record.order), { recursive: true, force: true })
  const hasFiles = record.state === 'complete' || record.state === 'partial'
  if (!hasFiles) await targetOf(parts, record.order).remove(exportId)
  // The sweep finds by it what a worker that dies here leaves.
  await parts.spool.remove(exportId)
}

/** What a worker that was stopped for long has written of an export that has been removed meanwhile. */
async function removeUnknown({ targets, spool }: ExportParts, exportId: string): Promise<void> {
  for (const target of targets.values()) {
    if (target.workFolder !== undefined)
      await rm(join(target.workFolder, exportId), { recursive: true, force: true })
    await target.remove(exportId)
  }
  await spool.remove(exportId)
}

function spanJobsOf({ order, checkpoint }: ExportRecord): readonly string[] {
  return (checkpoint?.ordered ?? []).flatMap(({ index }) =>
    order.plan.devices.map((_, device) => spanJobId(order.id, index, device)),
  )
}

/** Exports without a job get one again; runs of schedules that were missed are ordered; exports that have expired go; the spool keeps nothing of exports that are gone. */
async function sweep(parts: ExportParts): Promise<void> {
  for (const id of await parts.store.live()) await restart(parts, id)
  if (isTrusted(parts.clock)) await runDueSchedules(parts, parts.clock.nowMs())
  await expire(parts)
  const spooled = await parts.spool.exports()
  for (const id of new Set([...spooled, ...(await exportsInWork(parts))])) {
    const record = await parts.store.find(id)
    if (record !== undefined && ENDED_STATES.includes(record.state))
      await orLater(parts, id, () => clean(parts, id))
    // The spool is ours alone; others may keep files in the same target.
    if (record === undefined) await parts.spool.remove(id)
  }
}

/** One of which a job still runs, or whose target is gone or away, has its turn later; the others have nothing to do with it. */
async function orLater({ log }: ExportParts, exportId: string, act: () => Promise<void>): Promise<void> {
  try {
    await act()
  } catch (err) {
    if (err instanceof Later) return
    if (err instanceof CapfleetError && err.code === 'scheduler-unavailable') throw err
    log.warn('export.not-removed', { exportId, err })
  }
}

/** Ids of those that have a folder where files are made. */
async function exportsInWork({ targets }: ExportParts): Promise<readonly string[]> {
  const folders = [...targets.values()].flatMap(({ workFolder: folder }) => folder ?? [])
  // A disk that is not mounted has nothing to tell.
  const names = await Promise.all(folders.map((folder) => readdir(folder).catch(() => [])))
  return names.flat()
}

/** Redis may have lost the job of an export, with its last second. */
async function restart({ store, jobs }: ExportParts, id: string): Promise<void> {
  if (await jobs.isThere(id)) return
  const record = await store.find(id)
  if (record !== undefined && LIVE_STATES.includes(record.state)) await jobs.start(record.order, 1)
}

async function expire(parts: ExportParts): Promise<void> {
  // For lack of room also those go that may not go for their age now.
  const nowMs = isTrusted(parts.clock) ? parts.clock.nowMs() : Number.NEGATIVE_INFINITY
  let keptBytes = 0
  for await (const record of allExports(parts)) {
    if (!ENDED_STATES.includes(record.state)) continue
    if (keptCount(record) > 0) keptBytes += Number(record.checkpoint?.writtenBytes ?? 0)
    const untilMs = record.expiresMs ?? (record.endedMs ?? 0) + ENDED_KEPT_MS
    const isTooMuch = keptBytes > (parts.limits.keepBytes ?? Number.POSITIVE_INFINITY)
    if (untilMs <= nowMs || isTooMuch || record.isRemoved)
      await orLater(parts, record.order.id, () => removeExport(parts, record.order))
  }
}

function isTrusted({ distrust }: SharedTime): boolean {
  return distrust === undefined
}

/** The newest first. */
async function* allExports({ store }: ExportParts): AsyncGenerator<ExportRecord> {
  let after: string | undefined
  do {
    const page = await store.page({ user: undefined, after, limit: PAGE })
    yield* page.records
    after = page.next
  } while (after !== undefined)
}

const PAGE = 500

/** The export and its files are gone. REQUIRES: it has ended. */
async function removeExport(parts: ExportParts, order: ExportOrder): Promise<void> {
  parts.log.info('export.expired', { exportId: order.id, user: order.user })
  await rm(workFolder(parts, order), { recursive: true, force: true })
  await targetOf(parts, order).remove(order.id)
  await parts.store.forget(order)
  await parts.spool.remove(order.id)
}
