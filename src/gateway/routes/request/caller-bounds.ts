/** What callers see within their bounds: of the fleet, and of what was created for them and for others. */
import { refuseWithout } from '../../../shared/auth/authenticate.ts'
import { type Caller, isOf, UNBOUNDED } from '../../../shared/base/caller.ts'
import type { Endpoint } from '../../../shared/contract/endpoint.ts'
import { type KeptPlan, rangeAgain } from '../../fleet/plan/kept-plan.ts'
import { isLongerThan, outOfBounds } from '../../fleet/plan/within-bounds.ts'
import { VisibleFleet } from '../../fleet/visible-fleet.ts'
import type { RequestParts } from './request-parts.ts'
import type { RouteContext } from './route-context.ts'

/** The parts as the handlers of this caller get them, so that no handler can see a hidden device. */
export function visibleParts<Parts extends RequestParts>(parts: Parts, caller: Caller | undefined): Parts {
  const { devices } = caller?.bounds ?? UNBOUNDED
  return devices.length === 0 ? parts : { ...parts, fleet: new VisibleFleet(parts.downloads.fleet, devices) }
}

/** Something that was created for a caller: a download with its receipt, an export, a schedule. */
export interface Made {
  readonly user: string
  readonly madeMs: number
  readonly devices: readonly string[]
  readonly forcedFilters: readonly string[]
  /** Length of its time range. Default: unknown, or none. */
  readonly spanNs?: bigint | undefined
}

/** What the bounds of a caller decide about, for something that was created from `plan`. */
export function madeOf(made: Pick<Made, 'user' | 'madeMs'>, plan: KeptPlan): Made {
  const { devices, forcedFilters } = plan
  const { kind, beginNs, endNs, localTimes } = rangeAgain(plan)
  const spanNs = kind === 'single' || localTimes !== undefined ? undefined : endNs - beginNs
  return { ...made, devices, forcedFilters, spanNs }
}

/**
 * Whether the caller may know about it: it is theirs, or they may see other users' downloads; and nothing of it is
 * hidden from them.
 */
export function maySee(ctx: RouteContext, parts: RequestParts, made: Made): boolean {
  const { caller } = ctx.state
  if (caller === undefined) return false
  if (!isOf(caller, made) && !seesOthers(ctx)) return false
  const { filters, spanMaxS } = caller.bounds
  const hasFilters = filters.every((filter) => made.forcedFilters.includes(filter))
  const isShort =
    spanMaxS === undefined || (made.spanNs !== undefined && !isLongerThan(made.spanNs, spanMaxS))
  return hasFilters && isShort && seesAll(parts, made.devices)
}

/** Being allowed to see what another user created does not allow changing it. Fails with insufficient-scope. */
export function refuseChangeOfOthers(
  { state: { caller } }: RouteContext,
  made: Pick<Made, 'user' | 'madeMs'>,
): void {
  if (caller !== undefined && !isOf(caller, made)) refuseWithout('admin', caller)
}

/** Whether the caller may see other users' downloads. */
export function seesOthers({ state: { caller } }: RouteContext): boolean {
  return caller?.scopes.has('audit:read') ?? false
}

/** Whether the caller may see other users' running queries: only without bounds on devices, packets or ranges. */
export function seesQueries(ctx: RouteContext): boolean {
  const { devices, filters, spanMaxS } = ctx.state.caller?.bounds ?? UNBOUNDED
  return seesOthers(ctx) && devices.length === 0 && filters.length === 0 && spanMaxS === undefined
}

/** A device that has left the fleet is visible to callers who see all devices. */
export function seesAll(parts: RequestParts, devices: readonly string[]): boolean {
  if (!(parts.fleet instanceof VisibleFleet)) return true
  return devices.every((device) => parts.fleet.find(device) !== undefined)
}

/** Whether the caller may only have packets that pass a filter: then nothing that counts other packets may be shown. */
export function isFiltered({ state: { caller } }: RouteContext): boolean {
  return caller !== undefined && caller.bounds.filters.length > 0
}

/** Fails with out-of-bounds if the route is not available to filtered callers. */
export function refuseFiltered(ctx: RouteContext, { filtered }: Pick<Endpoint, 'filtered'>): void {
  if (filtered !== 'refused' || !isFiltered(ctx)) return
  throw outOfBounds('you may only receive packets that pass your filter, and this path reveals others too')
}
