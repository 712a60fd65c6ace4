import type { RouterContext } from '@koa/router'
import type { Role } from '../base/role.ts'
import type { RequestState } from '../http/http-app.ts'
import type { GatewayParts } from './gateway-parts.ts'

export type RouteContext = RouterContext<RequestState>

/** Answers a request, or throws a CapfleetError before the first byte. */
export type RouteHandler = (ctx: RouteContext, parts: GatewayParts) => Promise<void>

/** One row of the route table. */
export interface Route {
  /** GET stands for HEAD too. */
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** In the syntax of path-to-regexp 8; upper and lower case and a final slash matter. */
  readonly path: string
  /**
   * The least role that may use it; anyone = without credentials. "system" and "metrics" are open when
   * auth.anonymousSystem, or anonymousMetrics, is true; else a viewer's.
   */
  readonly role: Role | 'anyone' | 'system' | 'metrics'
  readonly handler: RouteHandler
}
