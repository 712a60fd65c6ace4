/** Holders of streams and waiters, across all replicas. */
import { isOf } from '../../../shared/base/caller.ts'
import { CapfleetError } from '../../../shared/base/error.ts'
import { takeNoParameters } from '../../../shared/contract/request-parameters.ts'
import { exportOfLease } from '../../export/export-lease.ts'
import { type KeptPlan, rangeAgain } from '../../fleet/plan/kept-plan.ts'
import type { QueueRow } from '../../lease/lease.ts'
import type { StoredReceipt } from '../../serve/receipt.ts'
import { leasesOfQuestion, type RunningQuestion, requestOfLease } from '../../serve/running-questions.ts'
import {
  type Made,
  madeOf,
  maySee,
  refuseChangeOfOthers,
  seesAll,
  seesOthers,
} from '../request/caller-bounds.ts'
import { refuseUnsafeChange } from '../request/refuse-request.ts'
import { callerOf } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { DownloadsParts } from './downloads-parts.ts'

/** Oldest requests first; at most as many as the scheduler lists at once. */
export async function showQueue(ctx: RouteContext, parts: DownloadsParts): Promise<void> {
  takeNoParameters(ctx)
  const rows = (await parts.downloads.leases.queue()).filter(({ devices }) => seesAll(parts, devices))
  const orders = await ordersOf(ctx, parts, rows)
  ctx.set('Cache-Control', 'no-store')
  ctx.body = { requests: rows.map((row) => shownRow(row, orders.get(row.id))) }
}

/** One request while it waits or streams. Fails with unknown-request. */
export async function showQueuePlace(ctx: RouteContext, parts: DownloadsParts): Promise<void> {
  takeNoParameters(ctx)
  const { row } = await placeOf(ctx, parts)
  const orders = await ordersOf(ctx, parts, [row])
  ctx.set('Cache-Control', 'no-store')
  ctx.body = shownRow(row, orders.get(row.id))
}

/**
 * Ends a request that waits or streams: its client gets an error, or a body that is cut. The id of a count or a search
 * ends it at all of its devices, that of a row at this device. Fails with unknown-request, also for requests that the
 * caller may only see by name, with insufficient-scope, or with part-of-export.
 */
export async function cancelQueuePlace(ctx: RouteContext, parts: DownloadsParts): Promise<void> {
  refuseUnsafeChange(ctx)
  takeNoParameters(ctx)
  const { row, leases } = await placeOf(ctx, parts)
  const order = (await ordersOf(ctx, parts, [row])).get(row.id)
  const made = order?.made ?? madeFrom(row)
  if (!maySee(ctx, parts, made)) throw notInQueue(row.id)
  refuseChangeOfOthers(ctx, made)
  ctx.state.facts = { devices: row.devices, owner: row.user }
  const exportId = exportOfLease(row.id)
  if (exportId !== undefined) throw partOfExport(exportId)
  const state = await parts.downloads.leases.cancel(row.id, callerOf(ctx).name, leases)
  if (state === undefined) throw notInQueue(row.id)
  if (state === 'suspect') throw replicaSilent(row)
  ctx.set('Cache-Control', 'no-store')
  ctx.status = 202
  ctx.body = shownRow(row, order)
}

interface Place {
  readonly row: QueueRow
  /** The ids of its leases. */
  readonly leases: readonly string[]
}

async function placeOf(ctx: RouteContext, parts: DownloadsParts): Promise<Place> {
  const id = ctx.params.id ?? ''
  const question = (await parts.questions.findAll([id])).get(id)
  const leases = question === undefined ? [id] : leasesOfQuestion(id, question)
  const row = joined(id, await parts.downloads.leases.places(leases))
  if (row === undefined || !seesAll(parts, row.devices)) throw notInQueue(id)
  return { row, leases }
}

/** The rows of a request as one, which streams if one of them does. */
function joined(id: string, rows: readonly QueueRow[]): QueueRow | undefined {
  const [first, ...others] = rows
  if (first === undefined || others.length === 0) return first && { ...first, id }
  const waiting = rows.filter(({ state }) => state === 'waiting')
  const states = rows.map(({ state }) => state)
  const grants = rows.flatMap(({ grantedMs }) => grantedMs ?? [])
  const positions = waiting.map(({ position }) => position ?? 0)
  const isWaiting = waiting.length === rows.length
  return {
    ...first,
    id,
    state: isWaiting ? 'waiting' : states.includes('streaming') ? 'streaming' : 'suspect',
    devices: rows.flatMap(({ devices }) => devices),
    enqueuedMs: Math.min(...rows.map(({ enqueuedMs }) => enqueuedMs)),
    grantedMs: grants.length === 0 ? undefined : Math.min(...grants),
    position: isWaiting ? Math.min(...positions) : undefined,
    etaMs: undefined,
  }
}

/** What a row of the queue is for. */
interface Order {
  readonly made: Made
  readonly plan: KeptPlan
  /** Bytes that were sent to the client; null for counts and searches, and for an export, which keeps them itself. */
  readonly bytes: string | null
}

/** What the rows are for, by id, as far as the caller may know. */
async function ordersOf(
  ctx: RouteContext,
  parts: DownloadsParts,
  rows: readonly QueueRow[],
): Promise<ReadonlyMap<string, Order>> {
  const { caller } = ctx.state
  const known = rows.filter((row) => seesOthers(ctx) || (caller !== undefined && isOf(caller, madeFrom(row))))
  const ids = [
    ...new Set(known.flatMap(({ id }) => (exportOfLease(id) === undefined ? requestOfLease(id) : []))),
  ]
  const receipts = await parts.downloads.receipts.findAll(ids)
  const questions = await parts.questions.findAll(ids.filter((id) => !receipts.has(id)))
  const exports = await exportsOf(parts, known)
  const orderOf = ({ id }: QueueRow): Order | undefined => {
    const receipt = receipts.get(requestOfLease(id))
    if (receipt !== undefined) return downloadOrder(receipt)
    const question = questions.get(requestOfLease(id))
    return question === undefined ? exports.get(exportOfLease(id) ?? '') : questionOrder(question)
  }
  const orders = known.flatMap((row): readonly (readonly [string, Order])[] => {
    const order = orderOf(row)
    return order === undefined || !maySee(ctx, parts, order.made) ? [] : [[row.id, order]]
  })
  return new Map(orders)
}

function questionOrder({ user, beganMs: madeMs, plan }: RunningQuestion): Order {
  return { made: madeOf({ user, madeMs }, plan), plan, bytes: null }
}

function downloadOrder({ user, startedAt, bytes, resume: plan }: StoredReceipt): Order {
  return { made: madeOf({ user, madeMs: Date.parse(startedAt) }, plan), plan, bytes }
}

/** One export has many rows, one for each device that it reads. */
async function exportsOf(
  { exports: { store } }: DownloadsParts,
  rows: readonly QueueRow[],
): Promise<ReadonlyMap<string, Order>> {
  const ids = new Set(rows.flatMap(({ id }) => exportOfLease(id) ?? []))
  const found = new Map<string, Order>()
  for (const id of ids) {
    const record = await store.find(id)
    if (record === undefined) continue
    const { user, createdMs: madeMs, plan } = record.order
    found.set(id, { made: madeOf({ user, madeMs }, plan), plan, bytes: null })
  }
  return found
}

/** All that the queue itself knows: filters that were forced, and the length of a range, are unknown. */
function madeFrom({ user, enqueuedMs: madeMs, devices }: QueueRow): Made {
  return { user, madeMs, devices, forcedFilters: [] }
}

function shownRow(
  { enqueuedMs, grantedMs, position, etaMs, ...row }: QueueRow,
  order: Order | undefined,
): Record<string, unknown> {
  return {
    ...row,
    request: requestOfLease(row.id),
    enqueuedAt: new Date(enqueuedMs).toISOString(),
    grantedAt: grantedMs === undefined ? null : new Date(grantedMs).toISOString(),
    position: position ?? null,
    etaMs: etaMs === undefined ? null : Math.round(etaMs),
    ...shownOrder(row.id, order),
  }
}

function shownOrder(id: string, order: Order | undefined): Record<string, string | null> {
  if (order === undefined) return { export: null, capture: null, fromNs: null, toNs: null, bytes: null }
  const { kind, captureName, beginNs, endNs, localTimes } = rangeAgain(order.plan)
  const hasRange = kind !== 'single' && localTimes === undefined
  return {
    export: exportOfLease(id) ?? null,
    capture: captureName ?? null,
    fromNs: hasRange ? String(beginNs) : null,
    toNs: hasRange ? String(endNs) : null,
    bytes: order.bytes,
  }
}

/** The same for a missing id and for another user's. */
function notInQueue(id: string): CapfleetError {
  return new CapfleetError(
    'unknown-request',
    `no request of yours waits or streams under the id ${JSON.stringify(id.slice(0, 64))}; GET /v1/queue lists them`,
  )
}

function partOfExport(exportId: string): CapfleetError {
  return new CapfleetError(
    'part-of-export',
    `the request belongs to export ${exportId}, which would repeat it; cancel the export: DELETE /v1/exports/${exportId}, or capfleet export cancel`,
  )
}

function replicaSilent({ id, replica }: QueueRow): CapfleetError {
  return new CapfleetError(
    'replica-lost',
    `the gateway ${replica} that serves request ${id} does not respond; its streams are released when the devices report that they ended`,
  )
}
