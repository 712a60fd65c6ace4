import Router from '@koa/router'
import type { Next } from 'koa'
import { CapfleetError } from '../base/error.ts'
import type { RequestState } from '../base/http-app.ts'
import type { Route, RouteContext } from './route.ts'

/**
 * Finds the row of a request. @koa/router tries each of its rows on each request, so every path of the
 * table without a wildcard has a router of its own here, found by a look-up; the others share one.
 */
export class RouteTable {
  readonly #byPath = new Map<string, Rows>()
  readonly #others = new Rows()

  /** `run` answers a request to a row. */
  constructor(routes: readonly Route[], run: (route: Route, ctx: RouteContext) => Promise<void>) {
    for (const route of routes)
      this.#rowsFor(route.path).add(route.path, route.method, (ctx) => run(route, ctx))
  }

  /** Fails with method-not-allowed. Goes on with `next` when there is nothing at the path. */
  dispatch(ctx: RouteContext, next: Next): Promise<unknown> {
    const rows = this.#byPath.get(asInTable(ctx.path)) ?? this.#others
    return rows.dispatch(ctx, next)
  }

  #rowsFor(path: string): Rows {
    const rest = path.startsWith(ONE_DEVICE) ? path.slice(ONE_DEVICE.length) : path
    if (WILDCARD.test(rest)) return this.#others
    const rows = this.#byPath.get(path) ?? new Rows()
    this.#byPath.set(path, rows)
    return rows
  }
}

/** Rows that are tried one after the other. */
class Rows {
  readonly #router = new Router<RequestState>({ sensitive: true, strict: true })
  readonly #routes = this.#router.routes()
  readonly #otherMethods = this.#router.allowedMethods()

  add(path: string, method: Route['method'], run: (ctx: RouteContext) => Promise<void>): void {
    this.#router.register(path, [method], run)
  }

  dispatch(ctx: RouteContext, next: Next): Promise<unknown> {
    return this.#routes(ctx, async () => {
      await this.#otherMethods(ctx, next)
      if (ctx.status === 405 || ctx.status === 501) throw methodNotAllowed()
    })
  }
}

const DEVICES = '/devices/'
const ONE_DEVICE = '/devices/:device'
const WILDCARD = /[:{]/

/** The path as the table spells it, should the table have it without a wildcard. */
function asInTable(path: string): string {
  if (!path.startsWith(DEVICES)) return path
  const end = path.indexOf('/', DEVICES.length)
  return end < 0 ? path : ONE_DEVICE + path.slice(end)
}

/** The header Allow is set already. */
function methodNotAllowed(): CapfleetError {
  return new CapfleetError(
    'method-not-allowed',
    'this path does not take this method; the README has the methods of each path',
  )
}
