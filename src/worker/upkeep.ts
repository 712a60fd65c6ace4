/** Housekeeping jobs: remove what is left of an export, find lost work, maintain schedules, expire files. */

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

/** How long a job that is no longer wanted may take to notice. */
const NOTICE_MS = 500
/** How long a failed export stays listed. */
const ENDED_KEPT_MS = 86_400_000

export async function runUpkeep(parts: ExportParts, job: Job<UpkeepJob>): Promise<JobTurn> {
  const { exportId, scheduleId } = job.data
  if (job.name === 'clean' && exportId !== undefined) await clean(parts, exportId)
  // What is due while the time is not trusted is found by a later sweep.
  if (job.name === 'schedule' && scheduleId !== undefined && isTrusted(parts.clock))
    await runSchedule(parts, scheduleId, parts.clock.nowMs())
  if (job.name === 'sweep') {
    await sweep(parts)
    await parts.store.workers.countSweep()
  }
  return 'done'
}

/**
 * Removes what an ended export has left in the spool and in the queues; for one without files, also the finished ones.
 * Throws Later while one of its jobs is still running.
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
  // Last, so that the sweep finds what a worker that dies here leaves behind.
  await parts.spool.remove(exportId)
}

/** Removes what a suspended worker has written for an export that has been removed meanwhile. */
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

/**
 * Queues exports without a job again, orders missed runs of schedules, removes expired exports, and removes what the
 * spool has of exports that no longer exist.
 */
async function sweep(parts: ExportParts): Promise<void> {
  for (const id of await parts.store.live()) await restart(parts, id)
  if (isTrusted(parts.clock)) await runDueSchedules(parts, parts.clock.nowMs())
  await expire(parts)
  const spooled = await parts.spool.exports()
  for (const id of new Set([...spooled, ...(await exportsInWork(parts))])) {
    const record = await parts.store.find(id)
    if (record !== undefined && ENDED_STATES.includes(record.state))
      await orLater(parts, id, () => clean(parts, id))
    // Only the spool is ours alone; others may keep files in the same target.
    if (record === undefined) await parts.spool.remove(id)
  }
}

/**
 * An export with a running job, or whose target is missing or unreachable, is handled later, without affecting the
 * others.
 */
async function orLater({ log }: ExportParts, exportId: string, act: () => Promise<void>): Promise<void> {
  try {
    await act()
  } catch (err) {
    if (err instanceof Later) return
    if (err instanceof CapfleetError && err.code === 'scheduler-unavailable') throw err
    log.warn('export.not-removed', { exportId, err })
  }
}

/** Ids of the exports with a folder where files are written. */
async function exportsInWork({ targets }: ExportParts): Promise<readonly string[]> {
  const folders = [...targets.values()].flatMap(({ workFolder: folder }) => folder ?? [])
  // A disk that is not mounted lists nothing.
  const names = await Promise.all(folders.map((folder) => readdir(folder).catch(() => [])))
  return names.flat()
}

/** Redis may have lost the job of an export with its last second. */
async function restart({ store, jobs }: ExportParts, id: string): Promise<void> {
  if (await jobs.isThere(id)) return
  const record = await store.find(id)
  if (record !== undefined && LIVE_STATES.includes(record.state)) await jobs.start(record.order, 1)
}

async function expire(parts: ExportParts): Promise<void> {
  // To free space, even exports may be removed whose age cannot be trusted now.
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

/** Newest first. */
async function* allExports({ store }: ExportParts): AsyncGenerator<ExportRecord> {
  let after: string | undefined
  do {
    const page = await store.page({ user: undefined, after, limit: PAGE })
    yield* page.records
    after = page.next
  } while (after !== undefined)
}

const PAGE = 500

/** Removes the export and its files. REQUIRES: it has ended. */
async function removeExport(parts: ExportParts, order: ExportOrder): Promise<void> {
  parts.log.info('export.expired', { exportId: order.id, user: order.user })
  await rm(workFolder(parts, order), { recursive: true, force: true })
  await targetOf(parts, order).remove(order.id)
  await parts.store.forget(order)
  await parts.spool.remove(order.id)
}
