/** For paths of callers who are known, and of whom the answer tells. */
import type { Caller } from '../base/caller.ts'
import type { RouteContext } from './route.ts'

/** REQUIRES: the row needs a caller. */
export function callerOf({ state: { caller } }: RouteContext): Caller {
  if (caller === undefined) throw new Error('a row for known callers was reached by nobody')
  return caller
}

/** Nobody between us and the caller keeps the answer. */
export function answerPrivately(ctx: RouteContext, body: object, status = 200): void {
  ctx.set('Cache-Control', 'no-store')
  ctx.status = status
  ctx.body = body
}
