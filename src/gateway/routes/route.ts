import type { RouterContext } from '@koa/router'
import type { Route } from '../../shared/contract/endpoint.ts'
import type { RequestState } from '../../shared/http/http-app.ts'
import type { GatewayParts } from './gateway-parts.ts'

export type RouteContext = RouterContext<RequestState>

/** A row of the gateway's table. */
export type GatewayRoute = Route<GatewayParts, RouteContext>

/** Answers a request, or throws a CapfleetError before the first byte. */
export type RouteHandler = GatewayRoute['handler']
