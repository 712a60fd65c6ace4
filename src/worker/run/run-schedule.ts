/**
 * Turns the runs of schedules into exports. Only the schedule decides when a run is due, not the job that wakes a
 * worker: it does not matter who checks, how often, or how late. That a run has become an export is stored with the
 * export.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { recordRun } from '../../gateway/export/export-audit.ts'
import { type ExportOrder, orderOf, targetName } from '../../gateway/export/export-order.ts'
import type { ExportParts } from '../../gateway/export/export-parts.ts'
import type { Schedule, ScheduledRun, ScheduleRecord } from '../../gateway/export/schedule-store.ts'
import { chooseSources } from '../../gateway/fleet/choose-devices.ts'
import { planDownload } from '../../gateway/fleet/plan/plan.ts'
import { withinBounds } from '../../gateway/fleet/plan/within-bounds.ts'
import { VisibleFleet } from '../../gateway/fleet/visible-fleet.ts'
import { joinBounds } from '../../shared/auth/bounds.ts'
import { findUser } from '../../shared/auth/users-file.ts'
import { type Caller, isOf } from '../../shared/base/caller.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import { EXPORT_PARAMETERS } from '../../shared/query/download/export-options.ts'
import { FLEET_PARAMETERS, parseGatewayOptions } from '../../shared/query/download/gateway-options.ts'
import { parseDownloadQuery } from '../../shared/query/download/parse-download-query.ts'
import { parseQueryString } from '../../shared/query/parse-query-string.ts'
import { readParameters } from '../../shared/query/read-parameters.ts'
import { followingCronMs } from '../../shared/query/time/cron-times.ts'

export type SchedulingParts = Pick<
  ExportParts,
  'schedules' | 'store' | 'clock' | 'jobs' | 'fleet' | 'targets' | 'ordering' | 'audit' | 'log'
>

/** Runs of one schedule that are ordered at once; the others follow at the next check. */
const RUNS_AT_ONCE = 1_000

/** Checks all schedules that are due, which finds runs whose job was lost. */
export async function runDueSchedules(parts: SchedulingParts, nowMs: number): Promise<void> {
  for (const id of await parts.schedules.due(nowMs)) {
    try {
      const record = await parts.schedules.find(id)
      await runSchedule(parts, id, nowMs)
      // Redis may have lost the job that wakes a worker.
      if (record !== undefined) await parts.jobs.keepSchedule(id, record.schedule)
    } catch (err) {
      // A failure must not affect the other schedules.
      parts.log.error('schedule.failed', { scheduleId: id, err })
    }
  }
}

/**
 * Orders the runs of a schedule that are due at `nowMs`, oldest first. Any number of workers may do so concurrently.
 * REQUIRES: that time is trusted.
 */
export async function runSchedule(parts: SchedulingParts, id: string, nowMs: number): Promise<void> {
  for (let left = RUNS_AT_ONCE; left > 0; left -= 1) {
    const record = await parts.schedules.find(id)
    if (record === undefined) return await parts.jobs.dropSchedule(id)
    if (record.nextMs > nowMs) return
    if (!(await orderRun(parts, record.schedule, await dueRun(record, nowMs)))) return
  }
}

/** REQUIRES: one is due. */
async function dueRun({ schedule, nextMs }: ScheduleRecord, nowMs: number): Promise<ScheduledRun> {
  let nominalMs = nextMs
  let followingMs = followingCronMs(schedule, nominalMs)
  for (let skipped = 1; schedule.missed === 'skip' && followingMs <= nowMs; skipped += 1) {
    nominalMs = followingMs
    followingMs = followingCronMs(schedule, nominalMs)
    // A year of minutes takes a while.
    if (skipped % 100 === 0) await nextTurn()
  }
  return { scheduleId: schedule.id, expectedMs: nextMs, nominalMs, followingMs }
}

/** Returns whether to continue with the next one. */
async function orderRun(parts: SchedulingParts, schedule: Schedule, run: ScheduledRun): Promise<boolean> {
  const { schedules, store, jobs, ordering, log } = parts
  const told = { scheduleId: schedule.id, user: schedule.user, at: new Date(run.nominalMs).toISOString() }
  try {
    const order = await runOrder(parts, schedule, run.nominalMs)
    await recordRun(parts.audit, order)
    const isOurs = await store.createRun(order, ordering.perUserMax, schedules.noteOf(run))
    if (!isOurs) return true
    log.info('schedule.ordered', { ...told, exportId: order.id })
    await jobs.start(order, await store.liveOf(order))
    return true
  } catch (error) {
    if (!(error instanceof CapfleetError) || error.code === 'scheduler-unavailable') throw error
    const { code, message: detail, kind } = error
    // A temporary failure is retried; an invalid order would be invalid again.
    const isOver = !kind.retry && kind.blame !== 'ours'
    log.warn('schedule.refused', { ...told, code, detail, isOver })
    await schedules.refuse(run, { code, detail }, isOver)
    return isOver
  }
}

/** What the run orders. Fails as an order of its user at that time would. */
async function runOrder(
  { fleet, targets, ordering, clock }: SchedulingParts,
  schedule: Schedule,
  nominalMs: number,
): Promise<ExportOrder> {
  const user = await userOf(schedule, ordering.users)
  const bounds = joinBounds(schedule.bounds, user.bounds)
  const given = parseQueryString(schedule.query)
  const asked = parseDownloadQuery('timerange', given, {
    zone: ordering.timeZone,
    timeSourceAliases: ordering.tsModeAliases,
    nowNs: BigInt(nominalMs) * 1_000_000n,
    at: 'fleet',
    table: 'export',
  })
  const { devices } = readParameters(FLEET_PARAMETERS, given)
  const query = withinBounds(asked, bounds)
  const names = chooseSources(new VisibleFleet(fleet, bounds.devices), devices).map(({ name }) => name)
  const exported = readParameters(EXPORT_PARAMETERS, given)
  return orderOf({
    plan: planDownload(query, names, ordering.devicesMax),
    fleet,
    options: parseGatewayOptions(given),
    exported,
    defaultTarget: targetName(targets, exported),
    user,
    createdMs: clock.nowMs(),
    quotas: bounds.quotas,
    scheduleId: schedule.id,
  })
}

/** A schedule may do what its user may do now. */
async function userOf(
  { user: name, createdMs: madeMs }: Schedule,
  users: string,
): Promise<Pick<Caller, 'name' | 'sinceMs' | 'bounds'>> {
  const user = await findUser(users, name)
  if (user === undefined || !isOf(user, { user: name, madeMs }))
    throw new CapfleetError('unauthenticated', `the user ${name} of the schedule has been removed`)
  if (user.scopes.has('export:create')) return user
  throw new CapfleetError(
    'insufficient-scope',
    `the user ${name} of the schedule may no longer order exports`,
  )
}
