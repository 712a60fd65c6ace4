import Router from '@koa/router'
import type Koa from 'koa'
import { authenticate } from '../auth/basic-auth-guard.ts'
import { CapfleetError } from '../base/error.ts'
import { createHttpApp, type RequestState } from '../base/http-app.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { Route, RouteContext } from './route.ts'

/** The HTTP application over a route table. */
export function createGatewayApp(routes: readonly Route[], parts: GatewayParts): Koa<RequestState> {
  const app = createHttpApp({ log: parts.log, metrics: parts.metrics })
  const router = new Router<RequestState>({ sensitive: true, strict: true })
  for (const route of routes) {
    router.register(route.path, [route.method], async (ctx: RouteContext) => {
      if (route.role !== 'anyone') {
        const user = await authenticate(parts.users, ctx.req.headers.authorization, route.role)
        ctx.state.user = user.name
        ctx.state.role = user.role
      }
      await route.handler(ctx, parts)
    })
  }
  app.use(router.routes())
  app.use(router.allowedMethods({ throw: true, methodNotAllowed, notImplemented: methodNotAllowed }))
  return app
}

function methodNotAllowed(): CapfleetError {
  return new CapfleetError(
    'method-not-allowed',
    'this path does not take this method; the README has the methods of each path',
  )
}
