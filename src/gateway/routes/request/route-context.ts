import type { RouterContext } from '@koa/router'
import type { Route } from '../../../shared/contract/endpoint.ts'
import type { RequestState } from '../../../shared/http/http-app.ts'

export type RouteContext = RouterContext<RequestState>

/** Answers a request, or throws a CapfleetError before the first byte. A room of handlers says which parts it works with. */
export type RouteHandler<Parts> = Route<Parts, RouteContext>['handler']
