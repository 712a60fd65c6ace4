import { CapfleetError } from '../src/base/error.ts'
import type { ApplianceContext } from './appliance-parts.ts'

/** A link or image on a foreign page must not change anything (api-decisions section 1). */
export function refuseCrossSite(ctx: ApplianceContext): void {
  if (ctx.get('Sec-Fetch-Site') === 'cross-site') {
    throw new CapfleetError('cross-site', 'a page of another site asked for this; use the API directly')
  }
}
