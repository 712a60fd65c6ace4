import type Koa from 'koa'
import { authenticate } from '../auth/basic-auth-guard.ts'
import { createHttpApp, type RequestState } from '../base/http-app.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { Route, RouteContext } from './route.ts'
import { RouteTable } from './route-table.ts'

/** The HTTP application over a route table. */
export function createGatewayApp(routes: readonly Route[], parts: GatewayParts): Koa<RequestState> {
  const app = createHttpApp({ log: parts.log, metrics: parts.metrics })
  const table = new RouteTable(routes, async (route, ctx) => {
    if (route.role !== 'anyone') {
      const user = await authenticate(parts.users, ctx.req.headers.authorization, route.role)
      ctx.state.user = user.name
      ctx.state.role = user.role
    }
    await route.handler(ctx, parts)
  })
  app.use((ctx: RouteContext, next) => table.dispatch(ctx, next))
  return app
}
