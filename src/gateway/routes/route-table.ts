import Router from '@koa/router'
import type { Next } from 'koa'
import { CapfleetError } from '../../shared/base/error.ts'
import type { RequestState } from '../../shared/http/http-app.ts'
import type { GatewayRoute } from './gateway-parts.ts'
import type { RouteContext } from './request/route-context.ts'

/**
 * Finds the route of a request. @koa/router tries each of its routes on each request, so those without a wildcard are
 * looked up in a map here; the router has the others, and determines which methods a path accepts.
 */
export class RouteTable {
  /** By path, then by method. */
  readonly #rows = new Map<string, Map<string, GatewayRoute>>()
  readonly #router = new Router<RequestState>({ sensitive: true, strict: true })
  readonly #routes = this.#router.routes()
  readonly #otherMethods = this.#router.allowedMethods()
  readonly #run: (route: GatewayRoute, ctx: RouteContext) => Promise<void>

  /** `run` answers a request with a route. */
  constructor(
    routes: readonly GatewayRoute[],
    run: (route: GatewayRoute, ctx: RouteContext) => Promise<void>,
  ) {
    this.#run = run
    for (const route of routes) this.#add(route)
  }

  /** Fails with method-not-allowed. Continues with `next` if there is no route for the path. */
  dispatch(ctx: RouteContext, next: Next): Promise<unknown> {
    const { path, params } = asInTable(ctx.path)
    const route = this.#rows.get(path)?.get(ctx.method === 'HEAD' ? 'GET' : ctx.method)
    if (route === undefined) return this.#tryEach(ctx, next)
    ctx.params = params
    return this.#run(route, ctx)
  }

  #add(route: GatewayRoute): void {
    this.#router.register(route.path, [route.method], (ctx) => this.#run(route, ctx))
    const rest = route.path.startsWith(ONE_DEVICE) ? route.path.slice(ONE_DEVICE.length) : route.path
    if (WILDCARD.test(rest)) return
    const rows = this.#rows.get(route.path) ?? new Map()
    this.#rows.set(route.path, rows.set(route.method, route))
  }

  #tryEach(ctx: RouteContext, next: Next): Promise<unknown> {
    return this.#routes(ctx, async () => {
      await this.#otherMethods(ctx, next)
      if (ctx.status === 405 || ctx.status === 501) throw methodNotAllowed()
    })
  }
}

const DEVICES = '/devices/'
const ONE_DEVICE = '/devices/:device'
const WILDCARD = /[:{]/

/** The path as the table spells it, if the table has it without a wildcard. */
function asInTable(path: string): { readonly path: string; readonly params: Record<string, string> } {
  if (!path.startsWith(DEVICES)) return { path, params: {} }
  const end = path.indexOf('/', DEVICES.length)
  const device = path.slice(DEVICES.length, end)
  // Decoding is left to the router.
  if (end < 0 || device === '' || device.includes('%')) return { path, params: {} }
  return { path: ONE_DEVICE + path.slice(end), params: { device } }
}

/** The header Allow has been set already. */
function methodNotAllowed(): CapfleetError {
  return new CapfleetError(
    'method-not-allowed',
    'this path does not support this method; /openapi lists the methods of each path',
  )
}
