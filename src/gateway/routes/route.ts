import type { Route } from '../../shared/contract/endpoint.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { RouteContext } from './request/route-context.ts'

/** A row of the gateway's table. */
export type GatewayRoute = Route<GatewayParts, RouteContext>
