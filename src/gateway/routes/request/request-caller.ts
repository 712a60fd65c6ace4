/** The caller of a request: who they are, whether they are still connected, and answers that only they may store. */
import type { Caller } from '../../../shared/base/caller.ts'
import { clientGone } from '../../../shared/base/error.ts'
import type { RouteContext } from './route-context.ts'

/** REQUIRES: the route needs a caller. */
export function callerOf({ state: { caller } }: RouteContext): Caller {
  if (caller === undefined) throw new Error('a row that requires a caller was reached without one')
  return caller
}

/** A signal that aborts when the client leaves before the answer is complete. */
export function requestSignal(ctx: RouteContext): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController()
  const onClose = () => controller.abort(clientGone())
  ctx.res.once('close', onClose)
  if (ctx.res.closed) onClose()
  return { signal: controller.signal, [Symbol.dispose]: () => ctx.res.off('close', onClose) }
}

/** Prevents intermediaries from storing the answer. */
export function answerPrivately(ctx: RouteContext, body: object, status = 200): void {
  ctx.set('Cache-Control', 'no-store')
  ctx.status = status
  ctx.body = body
}
