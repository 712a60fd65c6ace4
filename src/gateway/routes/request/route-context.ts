import type { RouterContext } from '@koa/router'
import type { Route } from '../../../shared/contract/endpoint.ts'
import type { RequestState } from '../../../shared/http/http-app.ts'

export type RouteContext = RouterContext<RequestState>

/**
 * Answers a request, or throws a CapfleetError before the first byte. Each folder of handlers declares which parts it
 * uses.
 */
export type RouteHandler<Parts> = Route<Parts, RouteContext>['handler']
