import type Koa from 'koa'
import { authenticate, recognize } from '../../shared/auth/authenticate.ts'
import { refuseMisspelt } from '../../shared/contract/refuse-misspelt.ts'
import { createHttpApp, type RequestState } from '../../shared/http/http-app.ts'
import { admitByTicket } from './access/ticket-handlers.ts'
import type { GatewayParts, GatewayRoute } from './gateway-parts.ts'
import { auditChange, auditRead, isAudited, parameterFacts } from './request/audited.ts'
import { refuseFiltered, seesQueries, visibleParts } from './request/caller-bounds.ts'
import { RefusalAudit } from './request/refusal-audit.ts'
import { refuseChangeWithoutForm } from './request/refuse-request.ts'
import type { RouteContext } from './request/route-context.ts'
import { RouteTable } from './route-table.ts'

/** The HTTP application over a route table. */
export function createGatewayApp(routes: readonly GatewayRoute[], parts: GatewayParts): Koa<RequestState> {
  const app = createHttpApp({
    log: parts.log,
    metrics: parts.metrics,
    spans: parts.spans,
    trustedProxies: parts.trustedProxies,
    hstsMaxAgeS: parts.hstsMaxAgeS,
    watchedProblems: ['queue-timeout'],
    takesTokens: parts.vouchers.tokens !== undefined,
  })
  const refusals = new RefusalAudit(parts.audit)
  const table = new RouteTable(routes, (route, ctx) =>
    refusals.watch(ctx, async () => {
      ctx.state.route = route.path
      await admit(ctx, route, parts, refusals)
      refuseChangeWithoutForm(ctx, route)
      refuseMisspelt(route, ctx)
      ctx.state.emptiesQueries = route.others === 'emptied' && !seesQueries(ctx)
      const answer = () => route.handler(ctx, visibleParts(parts, ctx.state.caller))
      if (route.isRecordedRead === true) await auditRead(ctx, parts.audit, route)
      if (!isAudited(route)) return await answer()
      await auditChange(ctx, parts.audit, answer, { parameters: parameterFacts(ctx, route) })
    }),
  )
  app.use((ctx: RouteContext, next) => table.dispatch(ctx, next))
  return app
}

/** Settings that open routes to callers without credentials. */
const OPENED_BY = { system: 'anonymousSystem', metrics: 'anonymousMetrics' } as const

async function admit(
  ctx: RouteContext,
  route: GatewayRoute,
  parts: GatewayParts,
  refusals: RefusalAudit,
): Promise<void> {
  const { scope } = route
  const { vouchers, limits } = parts
  if (await admitByTicket(ctx, route, parts)) return
  if (scope === 'anyone') return
  if (scope !== 'system' && scope !== 'metrics') {
    await authenticate(ctx, scope, vouchers)
    return refuseFiltered(ctx, route)
  }
  const setting = OPENED_BY[scope]
  if (limits[setting]) {
    await recognize(ctx, vouchers)
    const isNobody = ctx.state.caller === undefined && ctx.get('Authorization') !== ''
    return isNobody ? refusals.failedLogin(ctx) : undefined
  }
  await authenticate(ctx, 'device:read', vouchers, `auth.${setting}`)
  refuseFiltered(ctx, route)
}
