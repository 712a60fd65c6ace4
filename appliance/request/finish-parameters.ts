import { ignoredNames } from '../../src/query/ignored-names.ts'
import { QueryParameters } from '../../src/query/query-parameters.ts'
import type { ApplianceContext } from '../appliance-parts.ts'

/** Ends the reading of parameters: those that nobody took are named in Capfleet-Ignored. */
export function finishParameters(ctx: ApplianceContext, parameters: QueryParameters): void {
  const ignored = parameters.finish()
  if (ignored.length > 0) ctx.set('Capfleet-Ignored', ignoredNames(ignored))
}

/** The same for a path that changes something: a name that is misspelt by its case only is bad-parameter. */
export function finishChange(ctx: ApplianceContext, parameters: QueryParameters): void {
  parameters.refuseMiscased()
  finishParameters(ctx, parameters)
}

/** For a path that takes no parameters. Fails with bad-parameter for a malformed query. */
export function takeNoParameters(ctx: ApplianceContext): void {
  finishParameters(ctx, new QueryParameters(ctx.querystring))
}
