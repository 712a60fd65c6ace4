import type Koa from 'koa'
import { authenticate } from '../auth/basic-auth.ts'
import type { Role } from '../base/role.ts'
import { createHttpApp, type RequestState } from '../http/http-app.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { GatewayRoute, RouteContext } from './route.ts'
import { RouteTable } from './route-table.ts'

/** The HTTP application over a route table. */
export function createGatewayApp(routes: readonly GatewayRoute[], parts: GatewayParts): Koa<RequestState> {
  const app = createHttpApp({ log: parts.log, metrics: parts.metrics })
  const table = new RouteTable(routes, async (route, ctx) => {
    const role = neededRole(route, parts)
    if (role !== 'anyone') await authenticate(ctx, role, parts.users)
    await route.handler(ctx, parts)
  })
  app.use((ctx: RouteContext, next) => table.dispatch(ctx, next))
  return app
}

function neededRole({ role }: GatewayRoute, { limits }: GatewayParts): Role | 'anyone' {
  if (role === 'metrics') return limits.anonymousMetrics ? 'anyone' : 'viewer'
  // Nobody sees what devices tell of themselves without being a user of the gateway.
  return role === 'system' ? 'viewer' : role
}
