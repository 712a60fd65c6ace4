import type Koa from 'koa'
import { authenticate, recognize } from '../auth/basic-auth.ts'
import { createHttpApp, type RequestState } from '../http/http-app.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { GatewayRoute, RouteContext } from './route.ts'
import { RouteTable } from './route-table.ts'

/** The HTTP application over a route table. */
export function createGatewayApp(routes: readonly GatewayRoute[], parts: GatewayParts): Koa<RequestState> {
  const app = createHttpApp({ log: parts.log, metrics: parts.metrics })
  const table = new RouteTable(routes, async (route, ctx) => {
    await admit(ctx, route, parts)
    await route.handler(ctx, parts)
  })
  app.use((ctx: RouteContext, next) => table.dispatch(ctx, next))
  return app
}

/** What opens the rows of a role to callers without credentials. */
const OPENED_BY = { system: 'anonymousSystem', metrics: 'anonymousMetrics' } as const

async function admit(
  ctx: RouteContext,
  { role }: GatewayRoute,
  { users, limits }: GatewayParts,
): Promise<void> {
  if (role === 'anyone') return
  if (role !== 'system' && role !== 'metrics') return authenticate(ctx, role, users)
  const setting = OPENED_BY[role]
  if (limits[setting]) return recognize(ctx, users)
  await authenticate(ctx, 'viewer', users, `auth.${setting}`)
}
