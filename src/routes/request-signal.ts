import { clientGone } from '../base/error.ts'
import type { RouteContext } from './route.ts'

/** A signal that aborts when the client leaves before the answer is complete. */
export function requestSignal(ctx: RouteContext): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController()
  const onClose = () => controller.abort(clientGone())
  ctx.res.once('close', onClose)
  if (ctx.res.closed) onClose()
  return { signal: controller.signal, [Symbol.dispose]: () => ctx.res.off('close', onClose) }
}
