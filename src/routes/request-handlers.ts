import { shownReceipt } from '../serve/receipt.ts'
import { visibleReceipt } from './find-receipt.ts'
import type { GatewayParts } from './gateway-parts.ts'
import type { RouteContext } from './route.ts'

/** What became of a download, for 24 hours. */
export async function showRequest(ctx: RouteContext, parts: GatewayParts): Promise<void> {
  ctx.set('Cache-Control', 'no-store')
  ctx.body = shownReceipt(await visibleReceipt(ctx, parts, ctx.params.id ?? ''))
}
