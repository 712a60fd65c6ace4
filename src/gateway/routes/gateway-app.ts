import type Koa from 'koa'
import { admit } from '../../shared/auth/authenticate.ts'
import { refuseMisspelt } from '../../shared/contract/refuse-misspelt.ts'
import { takeForm } from '../../shared/http/form-body.ts'
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
      await admitCaller(ctx, route, parts, refusals)
      refuseChangeWithoutForm(ctx, route)
      if (route.takesForm === true && ctx.method === 'POST') await takeForm(ctx, route.takesText?.name)
      refuseMisspelt(route, ctx)
      ctx.state.emptiesQueries = route.others === 'emptied' && !seesQueries(ctx)
      const answer = () => route.handler(ctx, visibleParts(parts, ctx.state.caller))
      if (route.isRecordedRead === true) await auditRead(ctx, parts.audit, route)
      if (!isAudited(route)) return await answer()
      const { changes } = route
      await auditChange(ctx, parts.audit, answer, { changes, parameters: parameterFacts(ctx, route) })
    }),
  )
  app.use((ctx: RouteContext, next) => table.dispatch(ctx, next))
  return app
}

async function admitCaller(
  ctx: RouteContext,
  route: GatewayRoute,
  parts: GatewayParts,
  refusals: RefusalAudit,
): Promise<void> {
  const { scope } = route
  if ((await admitByTicket(ctx, route, parts)) || scope === 'anyone') return
  if (await admit(ctx, scope, parts.vouchers, parts.limits)) return refuseFiltered(ctx, route)
  const isNobody = ctx.state.caller === undefined && ctx.get('Authorization') !== ''
  if (isNobody) await refusals.failedLogin(ctx)
}
