/**
 * Authentication for both HTTP programs: HTTP Basic (RFC 7617) and, if the program accepts them, bearer tokens (RFC
 * 6750) and session cookies. An Authorization header takes precedence over a cookie.
 */
import { parse } from 'basic-auth'
import type Koa from 'koa'
import { type Caller, originOf } from '../base/caller.ts'
import { CapfleetError } from '../base/error.ts'
import { type Access, roleWith, type Scope } from '../base/scopes.ts'
import type { RequestState } from '../http/http-app.ts'
import { keepConnection } from '../http/http-server.ts'
import { sessionIn } from '../http/session-cookie.ts'
import type { UsersFile } from './users-file.ts'

type AskedContext = Pick<Koa.ParameterizedContext<RequestState>, 'req' | 'state'>

/** What verifies credentials. */
export interface Vouchers {
  readonly users: UsersFile
  /** Returns the caller of a bearer token or a session; fails with unauthenticated. Default: neither is accepted. */
  readonly tokens?: { verify(token: string, kind?: 'session'): Promise<Caller> } | undefined
}

/**
 * Puts the caller with the request's credentials into the context's state, even if they lack the scope `needed`;
 * `known` requires none. `openedBy` names a setting that would admit everyone. Fails with unauthenticated,
 * insufficient-scope or too-many-logins.
 */
export async function authenticate(
  ctx: AskedContext,
  needed: Scope | 'known',
  vouchers: Vouchers,
  openedBy?: string,
): Promise<void> {
  const { authorization } = ctx.req.headers
  const caller = await (authorization === undefined
    ? callerOfSession(ctx, vouchers)
    : callerOf(authorization, ctx, vouchers))
  if (caller === undefined) throw withoutCredentials(vouchers, openedBy)
  ctx.state.caller = caller
  keepConnection(ctx.req.socket)
  if (needed !== 'known') refuseWithout(needed, caller)
}

/** What opens rows to callers without credentials. */
const OPENED_BY = { system: 'anonymousSystem', metrics: 'anonymousMetrics' } as const

/**
 * Lets the caller through to a row that needs `access`, or fails as authenticate() does. Resolves to false where the row
 * is open to everyone: then the caller may be unknown.
 */
export async function admit(
  ctx: AskedContext,
  access: Access,
  vouchers: Vouchers,
  open: Readonly<Record<(typeof OPENED_BY)[keyof typeof OPENED_BY], boolean>>,
): Promise<boolean> {
  if (access !== 'anyone' && access !== 'system' && access !== 'metrics') {
    await authenticate(ctx, access, vouchers)
    return true
  }
  const setting = access === 'anyone' ? undefined : OPENED_BY[access]
  const isOpen = setting === undefined || open[setting]
  if (isOpen) await recognize(ctx, vouchers)
  else await authenticate(ctx, 'device:read', vouchers, `auth.${setting}`)
  return !isOpen
}

/**
 * Authenticates callers of a path that anyone may use. Valid credentials identify the caller; a request without
 * credentials or with wrong ones is not rejected and stays anonymous.
 */
export async function recognize(ctx: AskedContext, vouchers: Vouchers): Promise<void> {
  if (ctx.req.headers.authorization === undefined && sessionIn(ctx.req) === undefined) return
  try {
    await authenticate(ctx, 'device:read', vouchers)
  } catch (error) {
    if (!(error instanceof CapfleetError)) throw error
  }
}

/** Fails with insufficient-scope. */
export function refuseWithout(needed: Scope, { name, scopes, credential }: Caller): void {
  if (scopes.has(needed)) return
  const origin = originOf(credential)
  // Users of a provider's token have a role.
  const isOfToken = origin.kind === 'token' && origin.chain.length > 0
  const detail = isOfToken
    ? `this token of ${name} may not do this: it lacks the scope ${needed}; use a token that has it`
    : `${name} may not do this: it requires the scope ${needed}, which the role ${roleWith(needed)} has`
  throw new CapfleetError('insufficient-scope', detail, { members: { scopes: [...scopes], needed } })
}

/** Returns undefined if there is no session. */
async function callerOfSession({ req }: AskedContext, { tokens }: Vouchers): Promise<Caller | undefined> {
  const token = sessionIn(req)
  return token === undefined ? undefined : await tokens?.verify(token, 'session')
}

const BEARER = /^Bearer +([^ ]+)$/i

async function callerOf(
  authorization: string,
  ctx: AskedContext,
  { users, tokens }: Vouchers,
): Promise<Caller> {
  const token = BEARER.exec(authorization)?.[1]
  if (token !== undefined && tokens !== undefined) return tokens.verify(token)
  const caller = await users.verify(authorization, ctx.state.address)
  if (caller !== undefined) return caller
  if (parse(authorization) !== undefined) throw unauthenticated('the user name or the password is wrong')
  throw unauthenticated(
    tokens === undefined
      ? 'the Authorization header is not HTTP Basic (base64 of "user:password")'
      : 'the Authorization header is neither HTTP Basic (base64 of "user:password") nor "Bearer TOKEN"',
  )
}

function withoutCredentials({ tokens }: Vouchers, openedBy: string | undefined): CapfleetError {
  const ways = ['HTTP Basic credentials (curl -u NAME:PASSWORD)']
  if (tokens !== undefined) ways.push('a token (curl -H "Authorization: Bearer TOKEN")')
  const hint = openedBy === undefined ? '' : `; the setting ${openedBy}: true opens it to everyone`
  return unauthenticated(`this path requires a login; send ${ways.join(' or ')}${hint}`)
}

function unauthenticated(message: string): CapfleetError {
  return new CapfleetError('unauthenticated', message)
}
