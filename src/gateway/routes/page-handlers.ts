/** The web page and its files. */
import { CapfleetError } from '../../shared/base/error.ts'
import { noSuchPath } from '../../shared/http/http-app.ts'
import type { PageFile } from '../../shared/http/page-files.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { RouteContext } from './request/route-context.ts'

/** The page may load nothing that is not the gateway's own, and no other page may embed it. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'self'",
].join('; ')

/** For browsers; clients that do not explicitly accept HTML get not-found, as on any unknown path. */
export async function showPage(ctx: RouteContext, { page }: GatewayParts): Promise<void> {
  ctx.vary('Accept')
  if (!/\btext\/html\b/i.test(ctx.get('Accept'))) throw noSuchPath(ctx.path)
  if (page.index === undefined)
    throw new CapfleetError('not-found', 'the page was not built; `node .ci/setup.mjs` builds it')
  // Files of the page refer to each other by content hashes; the page itself has none.
  ctx.set({
    'Cache-Control': 'no-cache',
    'Content-Security-Policy': POLICY,
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Referrer-Policy': 'same-origin',
  })
  send(ctx, page.index)
}

/** Files named by the hash of their content. */
const HASHED = /-[\w-]+\.\w+$/

export async function showAsset(ctx: RouteContext, { page }: GatewayParts): Promise<void> {
  const name = String(ctx.params.name)
  const file = page.asset(name)
  if (file === undefined) throw noSuchPath(ctx.path)
  const caching = HASHED.test(name) ? 'public, max-age=31536000, immutable' : 'no-cache'
  // A web worker uses the policy of its own response.
  ctx.set({ 'Cache-Control': caching, 'Content-Security-Policy': POLICY })
  send(ctx, file)
}

function send(ctx: RouteContext, { mediaType, plain, gzip }: PageFile): void {
  ctx.vary('Accept-Encoding')
  const isZipped = gzip !== undefined && ctx.acceptsEncodings('gzip', 'identity') === 'gzip'
  const { bytes, etag } = isZipped ? gzip : plain
  ctx.set({ 'X-Content-Type-Options': 'nosniff', 'Cross-Origin-Resource-Policy': 'same-origin' })
  ctx.status = 200
  ctx.etag = etag
  if (ctx.fresh) {
    ctx.status = 304
    return
  }
  if (isZipped) ctx.set('Content-Encoding', 'gzip')
  ctx.set('Content-Type', mediaType)
  ctx.body = bytes
}
