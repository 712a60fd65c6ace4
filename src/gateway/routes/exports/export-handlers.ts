/** Exports: ordered, listed, shown, cancelled. */

import { refuseWithout } from '../../../shared/auth/authenticate.ts'
import { CapfleetError } from '../../../shared/base/error.ts'
import {
  givenParameters,
  takeNoParameters,
  takeParameters,
} from '../../../shared/contract/request-parameters.ts'
import { refuseBody } from '../../../shared/http/request-body.ts'
import { EXPORT_LIST_PARAMETERS, EXPORT_PARAMETERS } from '../../../shared/query/download/export-options.ts'
import { type GatewayOptions, parseGatewayOptions } from '../../../shared/query/download/gateway-options.ts'
import { estimatedKind, parseDownloadQuery } from '../../../shared/query/download/parse-download-query.ts'
import { ignoredNames } from '../../../shared/query/ignored-names.ts'
import type { ParameterValues } from '../../../shared/query/query-parameters.ts'
import { readParameters } from '../../../shared/query/read-parameters.ts'
import { type ExportOrder, orderedQuery, orderOf, targetName } from '../../export/export-order.ts'
import { ENDED_STATES, type ExportRecord, LIVE_STATES, shownExport } from '../../export/export-record.ts'
import { asBefore, fillingOf, isFillable } from '../../export/fill-export.ts'
import type { Idempotency } from '../../export/known-orders.ts'
import { refuseSmallFile } from '../../fetch/body/merged-pcapng.ts'
import { type DownloadPlan, planDownload, withinProfiles } from '../../fleet/plan/plan.ts'
import { planFacts } from '../../fleet/plan/plan-facts.ts'
import { madeOf, maySee, refuseChangeOfOthers, seesOthers } from '../request/caller-bounds.ts'
import { captureHolder } from '../request/capture-holder.ts'
import { refuseBadFilters } from '../request/check-download.ts'
import { selectedSources } from '../request/fleet-selection.ts'
import { parseRequestQuery } from '../request/parse-request-query.ts'
import { refuseUnsafeChange, refuseWhileDraining, refuseWithoutForm } from '../request/refuse-request.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { ExportsParts } from './exports-parts.ts'

type ExportOptions = ParameterValues<typeof EXPORT_PARAMETERS>

/** Orders an export with the parameters of a download. */
export async function orderExport(ctx: RouteContext, parts: ExportsParts): Promise<void> {
  refuseUnsafeChange(ctx)
  refuseBody(ctx)
  const given = givenParameters(ctx)
  const exported = readParameters(EXPORT_PARAMETERS, given)
  const plan = await planExport(ctx, parts, 'export')
  await refuseBadFilters(ctx, plan, parts)
  await answerOrder(ctx, parts, { plan, options: parseGatewayOptions(given), exported })
}

/** What an export for this request fetches, and from which devices. */
export async function planExport(
  ctx: RouteContext,
  parts: ExportsParts,
  table: 'export' | 'schedule',
): Promise<DownloadPlan> {
  refuseWithoutExports(parts)
  const kind = estimatedKind(givenParameters(ctx))
  const query = parseRequestQuery(ctx, parts, { kind, parse: parseDownloadQuery, at: 'fleet', table })
  const devices =
    kind === 'timerange'
      ? selectedSources(ctx, parts).map(({ name }) => name)
      : [await captureHolder(query.captureName ?? '', ctx, parts)]
  const plan = planDownload(query, devices, parts.exports.devicesMax)
  refuseSmallFile(plan)
  const { fleet } = parts.downloads
  await fleet.knowKinds(devices)
  withinProfiles(plan, fleet)
  return plan
}

/** A download that becomes an export (Queue=job), of one file in the first target. */
export async function orderDownload(
  ctx: RouteContext,
  parts: ExportsParts,
  plan: DownloadPlan,
  options: GatewayOptions,
): Promise<void> {
  refuseUnsafeChange(ctx)
  // The route is that of a download, which is not registered as a change.
  refuseWithoutForm(ctx)
  refuseWithoutExports(parts)
  if (ctx.state.caller !== undefined) refuseWithout('export:create', ctx.state.caller)
  const exported = { ...readParameters(EXPORT_PARAMETERS, new Map()), onMissing: options.onError }
  await answerOrder(ctx, parts, { plan, options, exported })
}

/** Fails with exports-off. */
function refuseWithoutExports({ exports }: ExportsParts): void {
  if (exports.isEnabled) return
  throw new CapfleetError(
    'exports-off',
    'exports are disabled on this gateway (setting exports.enabled); download directly, or ask its operator to enable exports',
  )
}

interface AskedExport {
  readonly plan: DownloadPlan
  readonly options: GatewayOptions
  readonly exported: ExportOptions
}

async function answerOrder(ctx: RouteContext, parts: ExportsParts, asked: AskedExport): Promise<void> {
  const { store, jobs, perUserMax } = parts.exports
  ctx.state.facts = planFacts(
    asked.plan.query,
    asked.plan.steps.map(({ device }) => device),
  )
  refuseWhileDraining(parts)
  const order = orderOf({
    ...asked,
    fleet: parts.fleet,
    defaultTarget: targetName(parts.exports.targets, asked.exported),
    user: ctx.state.caller,
    createdMs: parts.exports.clock.nowMs(),
    quotas: ctx.state.caller?.bounds.quotas,
  })
  await parts.quotas.add(order.id, order.quotas ?? [], 0)
  const id = await store.create(order, perUserMax, idempotencyOf(ctx))
  await jobs.start({ id }, await store.liveOf(order))
  const { ignored, timeZone } = asked.plan.query
  if (ignored.length > 0) ctx.set('Capfleet-Ignored', ignoredNames(ignored))
  if (timeZone !== undefined) ctx.set('Capfleet-Time-Zone', timeZone)
  ctx.set('Location', `/v1/exports/${id}`)
  await show(ctx, parts, await ownExport(ctx, parts, id), 202)
}

/** The user's exports, newest first; those of all users for callers who may see other users' downloads. */
export async function listExports(ctx: RouteContext, parts: ExportsParts): Promise<void> {
  const { limit, after, state } = takeParameters(ctx, EXPORT_LIST_PARAMETERS)
  const { store } = parts.exports
  const user = seesOthers(ctx) ? undefined : (ctx.state.caller?.name ?? '')
  const found: ExportRecord[] = []
  let page = await store.page({ user, after, limit })
  for (;;) {
    for (const record of page.records)
      if (
        isThere(parts, record) &&
        (state ?? record.state) === record.state &&
        maySeeExport(ctx, parts, record)
      )
        found.push(record)
    if (found.length >= limit || page.next === undefined) break
    page = await store.page({ user, after: page.next, limit })
  }
  const shown = found.slice(0, limit)
  const last = shown.at(-1)
  const isMore = found.length > limit || page.next !== undefined
  ctx.set('Cache-Control', 'no-store')
  const whole = shown.map(async (record) => ({ record, files: await store.keptFiles(record) }))
  ctx.body = {
    exports: (await Promise.all(whole)).map((one) => shownExport(one, parts.exports.clock.nowMs())),
    next: isMore && last !== undefined ? pageAfter(last.order) : null,
    workers: await store.workers.count(),
  }
}

/** One export. Fails with unknown-export. */
export async function showExport(ctx: RouteContext, parts: ExportsParts): Promise<void> {
  takeNoParameters(ctx)
  await show(ctx, parts, await ownExport(ctx, parts, ctx.params.id ?? ''))
}

/** Cancels a running export, removes one that has ended; one whose holes are being filled keeps its existing files. */
export async function cancelExport(ctx: RouteContext, parts: ExportsParts): Promise<void> {
  refuseUnsafeChange(ctx)
  takeNoParameters(ctx)
  refuseWithoutExports(parts)
  const { store, jobs } = parts.exports
  const record = await exportToChange(ctx, parts)
  const { order, base } = record
  const nowMs = parts.exports.clock.nowMs()
  const ended =
    base === undefined ? ({ state: 'cancelled', endedMs: nowMs } as const) : asBefore(base, record)
  const cancelled = { ...ended, stage: 'ended', writer: '' } as const
  const { isChanged } = await store.change(order, cancelled, { states: LIVE_STATES })
  // It has ended: from now on it is invisible, and a worker removes its files.
  if (!isChanged) await store.change(order, { expiresMs: nowMs, isRemoved: true }, { states: ENDED_STATES })
  await jobs.clean(order.id)
  await show(ctx, parts, (await store.find(order.id)) ?? record)
}

/** Fetches what is missing from a partial export. Fails with export-unfinished if nothing can be filled. */
export async function fillExport(ctx: RouteContext, parts: ExportsParts): Promise<void> {
  refuseUnsafeChange(ctx)
  refuseBody(ctx)
  takeNoParameters(ctx)
  const { store, jobs } = parts.exports
  const record = await exportToChange(ctx, parts)
  const { order } = record
  if (record.state !== 'partial' || !isFillable(record)) throw nothingToFill(record)
  refuseLimited(order)
  for (const device of order.plan.devices) {
    const { retries } = await store.troubleOf(order.id, device)
    await store.setTrouble(order.id, device, { retries, sinceMs: null, isGivenUp: false })
  }
  await store.change(order, fillingOf(record), { states: ['partial'] })
  await jobs.start(order, await store.liveOf(order))
  ctx.set('Location', `/v1/exports/${order.id}`)
  await show(ctx, parts, await ownExport(ctx, parts, order.id), 202)
}

function nothingToFill({ order, state }: ExportRecord): CapfleetError {
  const why =
    state === 'partial'
      ? 'everything that it lacks is permanently lost'
      : `it is ${state}, and only a partial export has gaps`
  return new CapfleetError('export-unfinished', `export ${order.id} has nothing to fill: ${why}`)
}

/** It is no longer known whether a limit cut off packets. */
function refuseLimited(order: ExportOrder): void {
  const { maxBytes, maxPackets, tsMaxNs } = orderedQuery(order)
  if (maxBytes === undefined && maxPackets === undefined && tsMaxNs === undefined) return
  throw new CapfleetError(
    'export-unfinished',
    `export ${order.id} has a limit (MaxBytes, MaxPackets or TSMax) that ended its files; order it again instead`,
  )
}

/** The export, if the caller may see it. Fails with unknown-export. */
export async function ownExport(ctx: RouteContext, parts: ExportsParts, id: string): Promise<ExportRecord> {
  const record = await parts.exports.store.find(id)
  if (record !== undefined && isThere(parts, record) && maySeeExport(ctx, parts, record)) return record
  throw new CapfleetError(
    'unknown-export',
    `you have no export ${JSON.stringify(id.slice(0, 64))}; GET /v1/exports lists yours`,
  )
}

/** The export, if the caller is its owner or an administrator. Fails with unknown-export or insufficient-scope. */
async function exportToChange(ctx: RouteContext, parts: ExportsParts): Promise<ExportRecord> {
  const record = await ownExport(ctx, parts, ctx.params.id ?? '')
  const { user, createdMs: madeMs } = record.order
  refuseChangeOfOthers(ctx, { user, madeMs })
  return record
}

/** The files of an expired export may have been removed already. */
function isThere({ exports: { clock } }: ExportsParts, { expiresMs, isRemoved }: ExportRecord): boolean {
  return !isRemoved && (expiresMs === undefined || expiresMs > clock.nowMs())
}

function maySeeExport(ctx: RouteContext, parts: ExportsParts, { order }: ExportRecord): boolean {
  const { user, createdMs: madeMs, plan } = order
  return maySee(ctx, parts, madeOf({ user, madeMs }, plan))
}

async function show(
  ctx: RouteContext,
  { exports: { store, clock } }: ExportsParts,
  record: ExportRecord,
  status = 200,
): Promise<void> {
  const files = await store.keptFiles(record)
  ctx.set('Cache-Control', 'no-store')
  ctx.status = status
  ctx.body = shownExport({ record, files }, clock.nowMs())
}

/** The idempotency key of the request. Fails with bad-parameter. */
export function idempotencyOf(ctx: RouteContext): Idempotency | undefined {
  const key = ctx.get('Idempotency-Key')
  if (key === '') return undefined
  // An earlier user of this name may have used the same key.
  const ofUser = `${ctx.state.caller?.sinceMs ?? ''} ${checkedKey(key)}`
  return { key: ofUser, asked: `${ctx.path}?${ctx.querystring}` }
}

const KEY_FORM = /^[\x21-\x7e]{1,255}$/

function checkedKey(key: string): string {
  if (KEY_FORM.test(key)) return key
  throw new CapfleetError('bad-parameter', 'Idempotency-Key must be 1 to 255 visible ASCII characters', {
    param: 'Idempotency-Key',
  })
}

/** The `After` value that continues a list after an export. */
export function pageAfter({ createdMs, id }: Pick<ExportOrder, 'createdMs' | 'id'>): string {
  return `${createdMs}.${id}`
}
