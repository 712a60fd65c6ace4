/** How a handler reads the query string of its request, according to parameter rows. */
import type { ParameterizedContext } from 'koa'
import type { RequestState } from '../http/http-app.ts'
import { ignoredNames } from '../query/ignored-names.ts'
import { parseQueryString } from '../query/parse-query-string.ts'
import type { ParameterRows, ParameterValues } from '../query/query-parameters.ts'
import { type GivenParameters, ignoredParameters, readParameters } from '../query/read-parameters.ts'

type RequestContext = ParameterizedContext<RequestState>

/** The parameters of the request, decoded once. Fails like parseQueryString. */
export function givenParameters(ctx: RequestContext): GivenParameters {
  ctx.state.given ??= parseQueryString(ctx.querystring)
  return ctx.state.given
}

/** The values of the rows; other parameters are listed in Capfleet-Ignored. Fails with bad-parameter. */
export function takeParameters<const Rows extends ParameterRows>(
  ctx: RequestContext,
  rows: Rows,
): ParameterValues<Rows> {
  const values = readParameters(rows, givenParameters(ctx))
  nameIgnored(ctx, rows)
  return values
}

/** For a path without parameters of its own. Fails with bad-parameter for a malformed query string. */
export function takeNoParameters(ctx: RequestContext): void {
  takeParameters(ctx, {})
}

function nameIgnored(ctx: RequestContext, rows: ParameterRows): void {
  const ignored = ignoredParameters([rows], givenParameters(ctx))
  if (ignored.length > 0) ctx.set('Capfleet-Ignored', ignoredNames(ignored))
}
