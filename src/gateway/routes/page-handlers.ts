/** The web page, the documentation, and their files. */
import { CapfleetError } from '../../shared/base/error.ts'
import { noSuchPath } from '../../shared/http/http-app.ts'
import type { PackedFile } from '../../shared/http/packed-files.ts'
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

/** For the frame of the dissector: it may not navigate to another host either. */
const WITH_FRAME = "frame-src 'self'"

/** For browsers; clients that do not explicitly accept HTML get not-found, as on any unknown path. */
export async function showPage(ctx: RouteContext, { page, dissector }: GatewayParts): Promise<void> {
  ctx.vary('Accept')
  if (!/\btext\/html\b/i.test(ctx.get('Accept'))) throw noSuchPath(ctx.path)
  const index = await page.file('index.html')
  if (index === undefined)
    throw new CapfleetError('not-found', 'the page was not built; `node .ci/setup.mjs` builds it')
  // Files of the page refer to each other by content hashes; the page itself has none.
  ctx.set({
    'Cache-Control': 'no-cache',
    'Content-Security-Policy': dissector === undefined ? POLICY : `${POLICY}; ${WITH_FRAME}`,
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Referrer-Policy': 'same-origin',
  })
  send(ctx, index)
}

/** Files named by the hash of their content. */
const HASHED = /-[\w-]+\.\w+$/
const FOR_EVER = 'public, max-age=31536000, immutable'

export async function showAsset(ctx: RouteContext, { page }: GatewayParts): Promise<void> {
  const name = String(ctx.params.name)
  const file = await page.file(`assets/${name}`)
  if (file === undefined) throw noSuchPath(ctx.path)
  // A web worker uses the policy of its own response.
  ctx.set({ 'Cache-Control': HASHED.test(name) ? FOR_EVER : 'no-cache', 'Content-Security-Policy': POLICY })
  send(ctx, file)
}

/**
 * The frame's script builds functions from text and compiles WebAssembly, which the page may not. So that neither can
 * do harm, the frame is sandboxed: its origin is its own, even if it is opened elsewhere, and it has no network.
 */
const FRAME_POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval' 'unsafe-eval'",
  "connect-src 'none'",
  'sandbox allow-scripts',
  "frame-ancestors 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')

/** A file of the dissector. All browsers that can execute it accept gzip. */
export async function showDissector(ctx: RouteContext, { dissector }: GatewayParts): Promise<void> {
  const { build, name } = ctx.params
  const file = dissector?.file(String(build), String(name))
  if (file === undefined) throw noSuchPath(ctx.path)
  ctx.set({
    'Cache-Control': FOR_EVER,
    'Content-Security-Policy': FRAME_POLICY,
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    // For the frame, the gateway is another origin.
    'Cross-Origin-Resource-Policy': 'cross-origin',
  })
  sendPacked(ctx, file)
}

function sendPacked(ctx: RouteContext, { mediaType, bytes, open }: PackedFile): void {
  ctx.status = 200
  // The path names the content.
  ctx.etag = ctx.path
  if (ctx.fresh) {
    ctx.status = 304
    return
  }
  ctx.set({ 'Content-Encoding': 'gzip', 'Content-Type': mediaType, 'Content-Length': String(bytes) })
  if (ctx.method !== 'HEAD') ctx.body = open()
}

const DOCS = '/docs/'

/** To the folder, whose pages refer to their files by relative paths. */
export async function leadToDocs(ctx: RouteContext): Promise<void> {
  ctx.body = null
  ctx.status = 302
  ctx.set({ Location: DOCS.slice(1), 'Cache-Control': 'no-cache' })
}

/** A page of the documentation, or a file that a page loads. */
export async function showDocs(ctx: RouteContext, { docs }: GatewayParts): Promise<void> {
  const path = ctx.path.slice(DOCS.length)
  const name = path === '' || path.endsWith('/') ? `${path}index.html` : path
  const file = await docs.file(name)
  if (file === undefined && docs.isEmpty)
    throw new CapfleetError('not-found', 'the documentation was not built; `node .ci/setup.mjs` builds it')
  if (file === undefined) throw noSuchPath(ctx.path)
  ctx.set({
    // All files in this folder are named by the hash of their content.
    'Cache-Control': name.startsWith('assets/') ? FOR_EVER : 'no-cache',
    'Content-Security-Policy': docsPolicy(file),
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Referrer-Policy': 'same-origin',
  })
  send(ctx, file)
}

/** Its icons are data: addresses in the style sheet, and each page has small scripts of its own. */
function docsPolicy({ scriptHashes }: PageFile): string {
  return [
    "default-src 'none'",
    ["script-src 'self'", ...scriptHashes].join(' '),
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ')
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
