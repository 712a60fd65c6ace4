import type { ApplianceContext } from '../appliance-parts.ts'

/** Whether a gateway says that its caller must not learn anything about packets that the filter hides. */
export function hasForcedFilter(ctx: Pick<ApplianceContext, 'get'>): boolean {
  return ctx.get('Capfleet-Forced-Filter') === 'true'
}
