/** Sessions of the page: signing in, renewing, signing out. */
import { type Caller, originOf } from '../../../shared/base/caller.ts'
import { productVersion } from '../../../shared/base/product-version.ts'
import { takeNoParameters, takeParameters } from '../../../shared/contract/request-parameters.ts'
import { SESSION_PARAMETERS } from '../../../shared/contract/session-api.ts'
import { refuseBody } from '../../../shared/http/request-body.ts'
import { noSessionCookie, sessionCookie } from '../../../shared/http/session-cookie.ts'
import type { OpenSession, SessionCaller } from '../../auth/sessions.ts'
import { refuseUnsafeChange } from '../request/refuse-request.ts'
import { answerPrivately, callerOf } from '../request/request-caller.ts'
import type { RouteContext } from '../request/route-context.ts'
import type { AccessParts } from './access-parts.ts'

export async function beginSession(ctx: RouteContext, parts: AccessParts): Promise<void> {
  refuseUnsafeChange(ctx)
  refuseBody(ctx)
  const caller = callerOf(ctx)
  const { path } = takeParameters(ctx, SESSION_PARAMETERS)
  const opened = await parts.tokens.sessions.begin(caller, path)
  keep(ctx, opened)
  ctx.set('Location', `/v1/tokens/${opened.credential.id}`)
  answerPrivately(ctx, shownSession({ ...caller, credential: opened.credential }, parts), 201)
}

/** Answers who the caller is; renews the session if there is one. */
export async function showSession(ctx: RouteContext, parts: AccessParts): Promise<void> {
  takeNoParameters(ctx)
  const caller = callerOf(ctx)
  if (!isInSession(caller)) return answerPrivately(ctx, shownSession(caller, parts))
  const opened = parts.tokens.sessions.renew(caller)
  keep(ctx, opened)
  answerPrivately(ctx, shownSession({ ...caller, credential: opened.credential }, parts))
}

export async function endSession(ctx: RouteContext, parts: AccessParts): Promise<void> {
  refuseUnsafeChange(ctx)
  takeNoParameters(ctx)
  const caller = callerOf(ctx)
  if (!isInSession(caller)) return answerPrivately(ctx, { ended: false })
  await parts.tokens.sessions.end(caller)
  ctx.set('Set-Cookie', noSessionCookie(caller.credential.path, ctx.req))
  answerPrivately(ctx, { ended: true })
}

function keep(ctx: RouteContext, { token, credential: { path } }: OpenSession): void {
  ctx.set('Set-Cookie', sessionCookie(token, path, ctx.req))
}

function isInSession(caller: Caller): caller is SessionCaller {
  return caller.credential.kind === 'session'
}

function shownSession(
  { name, scopes, bounds, credential }: Caller,
  { limits, exports, dissector }: AccessParts,
) {
  const session = credential.kind === 'session' ? credential : undefined
  return {
    user: name,
    credential: credential.kind,
    origin: originOf(credential).kind,
    scopes: [...scopes],
    bounds,
    formToken: session?.formToken ?? null,
    expiresAt: session === undefined ? null : new Date(session.expiresMs).toISOString(),
    endsAt: session === undefined ? null : new Date(session.endsMs).toISOString(),
    version: productVersion(),
    timeZone: limits.timeZone,
    exports: exports.isEnabled,
    demoTour: limits.demoTour,
    dissector: dissector?.build ?? null,
  }
}
