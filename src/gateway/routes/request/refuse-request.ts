import { timingSafeEqual } from 'node:crypto'
import { CapfleetError } from '../../../shared/base/error.ts'
import type { Endpoint } from '../../../shared/contract/endpoint.ts'
import { refuseCrossSite } from '../../../shared/http/cross-site.ts'
import { FORM_HEADER } from '../../../shared/http/session-cookie.ts'
import { isAudited } from './audited.ts'
import type { RequestParts } from './request-parts.ts'
import type { RouteContext } from './route-context.ts'

/** For requests that may outlast the gateway: their callers should use another one. Fails with draining. */
export function refuseWhileDraining({ draining }: Pick<RequestParts, 'draining'>): void {
  draining.throwIfAborted()
}

/** For changes on a device: a page of another site must not be able to send them, nor HEAD perform them. */
export function refuseUnsafeChange(ctx: RouteContext): void {
  refuseCrossSite(ctx.req)
  if (ctx.method === 'HEAD') {
    throw new CapfleetError('method-not-allowed', 'HEAD changes nothing; use POST, DELETE or GET', {
      allow: ['GET', ctx.path.endsWith('/pcap/del') ? 'DELETE' : 'POST'],
    })
  }
}

/** For a route that changes something, or may. Fails with cross-site. */
export function refuseChangeWithoutForm(ctx: RouteContext, route: Endpoint): void {
  const mayRead = ctx.method === 'GET' || ctx.method === 'HEAD' || route.takesForm === true
  const isRead = mayRead && !isAudited(route)
  if (!isRead) refuseWithoutForm(ctx)
}

/**
 * For changes authenticated by a cookie: browsers send that for other pages too, and only our page knows its form
 * token. Fails with cross-site.
 */
export function refuseWithoutForm(ctx: RouteContext): void {
  const credential = ctx.state.caller?.credential
  if (credential?.kind !== 'session') return
  refuseCrossSite(ctx.req)
  const [sent, right] = [Buffer.from(ctx.get(FORM_HEADER)), Buffer.from(credential.formToken)]
  if (sent.length === right.length && timingSafeEqual(sent, right)) return
  throw new CapfleetError(
    'cross-site',
    `with a session cookie, a change requires the header ${FORM_HEADER}: the formToken of GET /v1/session`,
  )
}
