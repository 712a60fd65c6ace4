/** Schedules of exports: ordered, listed, shown, removed. */
import { randomUUID } from 'node:crypto'
import { joinBounds, sameBounds } from '../../../shared/auth/bounds.ts'
import { isOf, UNBOUNDED } from '../../../shared/base/caller.ts'
import { CapfleetError } from '../../../shared/base/error.ts'
import { givenParameters, takeNoParameters } from '../../../shared/contract/request-parameters.ts'
import { refuseBody } from '../../../shared/http/request-body.ts'
import { EXPORT_PARAMETERS, SCHEDULE_PARAMETERS } from '../../../shared/query/download/export-options.ts'
import { FLEET_PARAMETERS, parseGatewayOptions } from '../../../shared/query/download/gateway-options.ts'
import { ignoredNames } from '../../../shared/query/ignored-names.ts'
import { parseQueryString } from '../../../shared/query/parse-query-string.ts'
import { badParameter, quote } from '../../../shared/query/query-parameters.ts'
import { type GivenParameters, readParameters } from '../../../shared/query/read-parameters.ts'
import { nextCronMs } from '../../../shared/query/time/cron-times.ts'
import { isRelativeTime } from '../../../shared/query/time/query-time.ts'
import { orderOf, targetName } from '../../export/export-order.ts'
import type { Schedule, ScheduleRecord } from '../../export/schedule-store.ts'
import { withoutLongList } from '../../fleet/plan/kept-plan.ts'
import { refuseChangeOfOthers, seesOthers } from '../request/caller-bounds.ts'
import { refuseBadFilters } from '../request/check-download.ts'
import { refuseUnsafeChange } from '../request/refuse-request.ts'
import type { RouteContext } from '../request/route-context.ts'
import { idempotencyOf, planExport } from './export-handlers.ts'
import type { ExportsParts } from './exports-parts.ts'

/** Stores a schedule, provided that its exports could be ordered now. */
export async function orderSchedule(ctx: RouteContext, parts: ExportsParts): Promise<void> {
  refuseUnsafeChange(ctx)
  refuseBody(ctx)
  refuseProvided(ctx)
  const given = givenParameters(ctx)
  refuseFixed(given)
  const { cron, cronZone = parts.limits.timeZone, missed } = readParameters(SCHEDULE_PARAMETERS, given)
  const createdMs = parts.exports.clock.nowMs()
  const nextMs = nextCronMs({ cron, cronZone }, createdMs)
  await refuseBadOrder(ctx, parts)
  const { schedules, jobs } = parts.exports
  const { name: user = '', sinceMs: userSinceMs, bounds = UNBOUNDED } = ctx.state.caller ?? {}
  const query = keptQuery(ctx)
  const rule = { cron, cronZone, missed }
  const schedule: Schedule = { id: randomUUID(), user, userSinceMs, ...rule, query, bounds, createdMs }
  const id = await schedules.create(schedule, nextMs, idempotencyOf(ctx))
  const record = await ownSchedule(ctx, parts, id)
  await jobs.keepSchedule(id, record.schedule)
  ctx.set('Location', `/v1/schedules/${id}`)
  show(ctx, record, 201)
}

/** The user's schedules, newest first; those of all users for callers who may see other users' downloads. */
export async function listSchedules(ctx: RouteContext, parts: ExportsParts): Promise<void> {
  takeNoParameters(ctx)
  const user = seesOthers(ctx) ? undefined : (ctx.state.caller?.name ?? '')
  const records = (await parts.exports.schedules.list(user)).filter((record) => maySeeSchedule(ctx, record))
  ctx.set('Cache-Control', 'no-store')
  ctx.body = { schedules: records.map(shownSchedule) }
}

/** One schedule. Fails with unknown-schedule. */
export async function showSchedule(ctx: RouteContext, parts: ExportsParts): Promise<void> {
  takeNoParameters(ctx)
  show(ctx, await ownSchedule(ctx, parts, ctx.params.id ?? ''))
}

/** No further run becomes an export. */
export async function removeSchedule(ctx: RouteContext, parts: ExportsParts): Promise<void> {
  refuseUnsafeChange(ctx)
  takeNoParameters(ctx)
  const { schedules, jobs } = parts.exports
  const record = await ownSchedule(ctx, parts, ctx.params.id ?? '')
  const { user, createdMs: madeMs } = record.schedule
  refuseChangeOfOthers(ctx, { user, madeMs })
  await schedules.remove(record.schedule)
  await jobs.dropSchedule(record.schedule.id)
  show(ctx, record)
}

/** The schedule, if the caller may see it. Fails with unknown-schedule. */
async function ownSchedule(ctx: RouteContext, parts: ExportsParts, id: string): Promise<ScheduleRecord> {
  const record = await parts.exports.schedules.find(id)
  if (record !== undefined && maySeeSchedule(ctx, record)) return record
  throw new CapfleetError(
    'unknown-schedule',
    `you have no schedule ${JSON.stringify(id.slice(0, 64))}; GET /v1/schedules lists yours`,
  )
}

/** Whether what it orders lies within the caller's own bounds. */
function maySeeSchedule(ctx: RouteContext, { schedule }: ScheduleRecord): boolean {
  const { caller } = ctx.state
  const { user, createdMs: madeMs } = schedule
  if (caller === undefined || !(isOf(caller, { user, madeMs }) || seesOthers(ctx))) return false
  return sameBounds(joinBounds(schedule.bounds, caller.bounds), schedule.bounds)
}

/**
 * At each run a worker looks up the user's rights in the users file, which does not contain users of identity
 * providers.
 */
function refuseProvided({ state: { caller } }: RouteContext): void {
  if (caller?.name.includes(':') !== true) return
  throw new CapfleetError(
    'out-of-bounds',
    `a schedule outlives the token of ${caller.name}; users of identity providers can order exports, but not schedules`,
  )
}

/** A query whose packets are the same at each run needs no schedule. */
function refuseFixed(given: GivenParameters): void {
  for (const name of ['StreamName', 'Start', 'Stop', 'from', 'to'])
    if (given.has(name))
      throw badParameter(
        name,
        'is the same time at each run; give relative times for TSBegin and TSEnd, such as -1h and now',
      )
  for (const name of ['TSBegin', 'TSEnd']) {
    const text = given.get(name) ?? ''
    if (text !== '' && !isRelativeTime(text))
      throw badParameter(name, `must be a time before the run, such as -1h or now, got ${quote(text)}`)
  }
  const { TSBegin, TSEnd } = Object.fromEntries(given)
  if (TSBegin !== undefined && TSBegin === TSEnd)
    throw badParameter('TSBegin', `must be before TSEnd, both are ${quote(TSBegin)}`)
}

/** Fails as ordering such an export would now. */
async function refuseBadOrder(ctx: RouteContext, parts: ExportsParts): Promise<void> {
  const given = givenParameters(ctx)
  const exported = readParameters(EXPORT_PARAMETERS, given)
  const plan = await planExport(ctx, parts, 'schedule')
  const defaultTarget = targetName(parts.exports.targets, exported)
  orderOf({
    plan,
    fleet: parts.fleet,
    options: parseGatewayOptions(given),
    exported,
    defaultTarget,
    user: ctx.state.caller,
    createdMs: parts.exports.clock.nowMs(),
  })
  await refuseBadFilters(ctx, plan, parts)
  const { ignored } = plan.query
  if (ignored.length > 0) ctx.set('Capfleet-Ignored', ignoredNames(ignored))
}

const OWN_NAMES: ReadonlySet<string> = new Set(Object.values(SCHEDULE_PARAMETERS).map(({ name }) => name))

/** The query of each run, as given, including devices selected by a header. */
function keptQuery(ctx: RouteContext): string {
  const pairs = ctx.querystring
    .split('&')
    .filter((pair) => [...parseQueryString(pair).keys()].every((name) => !OWN_NAMES.has(name)))
  const header = ctx.get('Capfleet-Device')
  const devices = `${FLEET_PARAMETERS.devices.name}=${encodeURIComponent(header)}`
  return [...pairs.filter((pair) => pair !== ''), ...(header === '' ? [] : [devices])].join('&')
}

function show(ctx: RouteContext, record: ScheduleRecord, status = 200): void {
  ctx.set('Cache-Control', 'no-store')
  ctx.status = status
  ctx.body = shownSchedule(record)
}

function shownSchedule({ schedule, nextMs, lastMs, lastExportId, error }: ScheduleRecord) {
  const { createdMs, bounds: _, userSinceMs: _since, ...asked } = schedule
  return {
    ...asked,
    query: withoutLongList(asked.query),
    kind: 'timerange',
    createdAt: new Date(createdMs).toISOString(),
    nextAt: new Date(nextMs).toISOString(),
    lastAt: lastMs === undefined ? null : new Date(lastMs).toISOString(),
    lastExportId: lastExportId ?? null,
    error: error ?? null,
  }
}
