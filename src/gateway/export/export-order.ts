/** An order: everything that an export is made from, as plain JSON that a worker reads back. */
import { randomUUID } from 'node:crypto'
import type { Caller, Quota } from '../../shared/base/caller.ts'
import type { ExportOptions } from '../../shared/query/download/export-options.ts'
import { formatGatewayOptions } from '../../shared/query/download/format-download-query.ts'
import type { GatewayOptions } from '../../shared/query/download/gateway-options.ts'
import { badParameter, quote } from '../../shared/query/query-parameters.ts'
import { type DeviceIdentity, identityOf } from '../fleet/device-identity.ts'
import type { Fleet } from '../fleet/fleet.ts'
import { type KeptPlan, keepPlan, queryAgain, shownQueryOf } from '../fleet/plan/kept-plan.ts'
import { type DownloadPlan, isTimedByHardware } from '../fleet/plan/plan.ts'
import { type PlanFacts, planFacts } from '../fleet/plan/plan-facts.ts'
import type { BoundedQuery } from '../fleet/plan/within-bounds.ts'

export interface ExportOrder {
  readonly id: string
  readonly user: string
  /** Since when the name is theirs, as Caller.sinceMs: exports of somebody who had it before do not count for them. */
  readonly userSinceMs?: number | undefined
  readonly createdMs: number
  readonly plan: KeptPlan
  /** Identity of each device's appliance at the time of the order, by device name. */
  readonly identities?: Readonly<Record<string, DeviceIdentity>>
  /** Whether timestamps are corrected by the clock offset of their device. */
  readonly align: boolean
  readonly partTimeNs: string | null
  readonly partBytes: string | null
  /** Name of the target. */
  readonly target: string
  readonly onMissing: 'fail' | 'partial'
  readonly reason: string | null
  /** The quotas that the written bytes count against. Default: none. */
  readonly quotas?: readonly Quota[]
  /** The schedule that ordered it, if any. */
  readonly scheduleId: string | null
}

export interface Ordering {
  readonly plan: DownloadPlan
  readonly fleet: Pick<Fleet, 'find'>
  readonly options: Pick<GatewayOptions, 'align'>
  readonly exported: ExportOptions
  /** The target used if the order names none. */
  readonly defaultTarget: string
  readonly user: Pick<Caller, 'name' | 'sinceMs'> | undefined
  /** By the time of all gateways and workers. */
  readonly createdMs: number
  readonly quotas?: readonly Quota[] | undefined
  readonly scheduleId?: string
}

/** Fails with bad-parameter for an invalid order. */
export function orderOf(ordering: Ordering): ExportOrder {
  const { plan, fleet, options, exported, defaultTarget, user, createdMs, quotas = [], scheduleId } = ordering
  refuseImpossible(plan.query, exported)
  const decimal = (value: bigint | undefined) => (value === undefined ? null : String(value))
  return {
    id: randomUUID(),
    user: user?.name ?? '',
    ...(user?.sinceMs === undefined ? {} : { userSinceMs: user.sinceMs }),
    createdMs,
    plan: keepPlan(plan),
    identities: identitiesOf(plan, fleet),
    align: options.align,
    partTimeNs: decimal(exported.partTimeNs),
    partBytes: decimal(exported.partBytes),
    target: exported.target ?? defaultTarget,
    onMissing: exported.onMissing,
    reason: exported.reason ?? null,
    ...(quotas.length > 0 ? { quotas } : {}),
    scheduleId: scheduleId ?? null,
  }
}

function identitiesOf(
  { steps }: DownloadPlan,
  fleet: Ordering['fleet'],
): Readonly<Record<string, DeviceIdentity>> {
  const known = steps.flatMap(({ device }): [string, DeviceIdentity][] => {
    const member = fleet.find(device)
    return member === undefined ? [] : [[device, identityOf(member)]]
  })
  return Object.fromEntries(known)
}

/** The named target, or the first one. Fails with bad-parameter if it is not configured. */
export function targetName(targets: ReadonlyMap<string, unknown>, { target }: ExportOptions): string {
  const [first = ''] = targets.keys()
  if (target === undefined || targets.has(target)) return target ?? first
  throw badParameter('Target', `must be one of ${[...targets.keys()].join(', ')}, got ${quote(target)}`)
}

/** The query as it was understood, including what the gateway itself does to the packets. */
export function shownQuery({ plan, align }: ExportOrder): string {
  const own = formatGatewayOptions({ align })
  return [shownQueryOf(plan), own].filter((text) => text !== '').join('&')
}

/** What the export covers, for the audit. */
export function orderFacts(order: ExportOrder): PlanFacts {
  return planFacts(orderedQuery(order), order.plan.devices)
}

export function orderedQuery({ plan }: ExportOrder): BoundedQuery {
  return queryAgain(plan)
}

/**
 * Whether the packets of a time range are exactly those of its parts, concatenated. Not true if a limit, the time of a
 * switch, duplicates or clock offsets reach across the borders of the parts.
 */
export function isDivisible(order: ExportOrder, query: BoundedQuery): boolean {
  const { maxBytes, maxPackets, tsMaxNs, capturesMax, dedupNs } = query
  const isLimited = [maxBytes, maxPackets, tsMaxNs, capturesMax, dedupNs].some((limit) => limit !== undefined)
  return isTimedByHardware(query) && !isLimited && !order.align
}

function refuseImpossible(query: BoundedQuery, { partTimeNs, partBytes }: ExportOptions): void {
  if (query.follow) throw badParameter('Follow', 'is only for interactive downloads; remove it')
  if (partTimeNs !== undefined && partBytes !== undefined)
    throw badParameter('PartBytes', 'and PartTime both split the export into files; use only one of them')
  if (partTimeNs === undefined) return
  if (query.kind === 'single')
    throw badParameter(
      'PartTime',
      'needs a range: give TSBegin and TSEnd, or Start and Stop beside StreamName',
    )
  const { localTimes, maxBytes, maxPackets, tsMaxNs } = query
  if (localTimes !== undefined)
    throw badParameter('PartTime', 'needs times that the gateway can convert: give TSZone, or epoch times')
  if (maxBytes !== undefined || maxPackets !== undefined || tsMaxNs !== undefined)
    throw badParameter('PartTime', 'cannot be combined with MaxBytes, MaxPackets or TSMax; remove them')
  const parts = (query.endNs - query.beginNs) / partTimeNs
  if (parts >= PARTS_MAX)
    throw badParameter(
      'PartTime',
      `would make ${parts} files, but at most ${PARTS_MAX} are allowed; give a longer time`,
    )
}

const PARTS_MAX = 10_000n
