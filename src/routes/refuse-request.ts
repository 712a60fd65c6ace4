import { CapfleetError } from '../base/error.ts'
import { refuseCrossSite } from '../http/cross-site.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { RouteContext } from './route.ts'

/** For what may last longer than the gateway: whoever asks for it is better off elsewhere. Fails with draining. */
export function refuseWhileDraining({ draining }: Pick<GatewayParts, 'draining'>): void {
  draining.throwIfAborted()
}

/** For what changes something on a device: a page of another site must not send it, nor HEAD do it. */
export function refuseUnsafeChange(ctx: RouteContext): void {
  refuseCrossSite(ctx.req)
  if (ctx.method === 'HEAD') {
    throw new CapfleetError('method-not-allowed', 'HEAD changes nothing; use POST, DELETE or GET', {
      allow: ['GET', ctx.path.endsWith('/pcap/del') ? 'DELETE' : 'POST'],
    })
  }
}

/** Devices take parameters in the query string only. */
export function refuseBody(ctx: RouteContext): void {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = ctx.req.headers
  if (length === '0' && coding === undefined) return
  throw new CapfleetError('bad-parameter', 'the request has a body; devices take none')
}
