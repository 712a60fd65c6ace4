/** Tickets: issued to users who may download, redeemed by anyone who has the link. */
import { refuseWithout } from '../../../shared/auth/authenticate.ts'
import { CapfleetError } from '../../../shared/base/error.ts'
import { isDownloadPath } from '../../../shared/contract/device-api.ts'
import type { Endpoint } from '../../../shared/contract/endpoint.ts'
import { takeParameters } from '../../../shared/contract/request-parameters.ts'
import { TICKET_PARAMETERS } from '../../../shared/contract/token-parameters.ts'
import { refuseBody } from '../../../shared/http/request-body.ts'
import { LINK_PARAMETERS } from '../../../shared/query/download/gateway-options.ts'
import { parseQueryString } from '../../../shared/query/parse-query-string.ts'
import { badParameter } from '../../../shared/query/query-parameters.ts'
import { refuseUnsafeChange } from '../request/refuse-request.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { AccessParts } from './access-parts.ts'

const TICKET_NAME = LINK_PARAMETERS.ticket.name

/** Issues a link to one download. */
export async function issueTicket(ctx: RouteContext, parts: AccessParts): Promise<void> {
  refuseUnsafeChange(ctx)
  refuseBody(ctx)
  const { for: target, lifetimeS } = takeParameters(ctx, TICKET_PARAMETERS)
  refuseOtherTarget(target)
  const { caller } = ctx.state
  if (caller === undefined) throw new Error('the row needs a caller')
  const { ticket, expiresMs } = await parts.tickets.issue(caller, target, lifetimeS)
  ctx.set('Cache-Control', 'no-store')
  ctx.status = 201
  ctx.body = {
    url: `${target}${target.includes('?') ? '&' : '?'}${TICKET_NAME}=${ticket}`,
    expiresAt: new Date(expiresMs).toISOString(),
  }
}

/**
 * Identifies the caller by the ticket of the request, if it has one and its route is a download. The ticket is then
 * removed: no handler, device or receipt sees it. Fails like Tickets.redeem, and with insufficient-scope and, for a POST,
 * bad-parameter.
 */
export async function admitByTicket(
  ctx: RouteContext,
  { context }: Pick<Endpoint, 'context'>,
  { tickets }: AccessParts,
): Promise<boolean> {
  const { querystring } = ctx
  const at = querystring.lastIndexOf(`${TICKET_NAME}=`)
  if (at < 0 || (at > 0 && querystring[at - 1] !== '&')) return false
  ctx.querystring = querystring.slice(0, Math.max(at - 1, 0))
  if (context?.kind === undefined) return false
  // A form could change the query for which the link was made.
  if (ctx.method === 'POST') throw badParameter(TICKET_NAME, 'is for a GET; request the link as it is')
  // It would select other devices than the link does.
  delete ctx.req.headers['capfleet-device']
  const target = ctx.querystring === '' ? ctx.path : `${ctx.path}?${ctx.querystring}`
  const ticket = querystring.slice(at + TICKET_NAME.length + 1)
  const caller = await tickets.redeem(ticket, target, ctx.method !== 'HEAD')
  ctx.state.caller = caller
  refuseWithout('capture:download', caller)
  return true
}

/** Fails with bad-parameter. */
function refuseOtherTarget(target: string): void {
  const { name } = TICKET_PARAMETERS.for
  const [path = '', ...queries] = target.split('?')
  if (!/^[!-~]+$/.test(target) || target.includes('#'))
    throw badParameter(
      name,
      'must be a path and a query as they appear in an address: non-ASCII characters as %XX',
    )
  if (!isDownloadPath(path)) throw badParameter(name, 'must start with the path of a download')
  if (parseQueryString(queries.join('?')).has(TICKET_NAME))
    throw new CapfleetError('bad-parameter', `${name} already has a ${TICKET_NAME}; remove it`, {
      param: name,
    })
}
