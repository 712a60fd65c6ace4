import { CapfleetError } from '../base/error.ts'
import type { RouteContext } from './route.ts'

/** A signal that aborts when the client leaves before the answer is complete. */
export function requestSignal(ctx: RouteContext): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController()
  // Nobody reads this answer; it only has to be one that is not logged as a defect.
  const onClose = () => controller.abort(new CapfleetError('draining', 'the client has gone'))
  ctx.res.once('close', onClose)
  if (ctx.res.closed) onClose()
  return { signal: controller.signal, [Symbol.dispose]: () => ctx.res.off('close', onClose) }
}
