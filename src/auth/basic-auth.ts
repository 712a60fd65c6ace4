/** Who asks, by HTTP Basic (RFC 7617), for both HTTP programs. */
import { parse } from 'basic-auth'
import type Koa from 'koa'
import { CapfleetError } from '../base/error.ts'
import { ROLES, type Role } from '../base/role.ts'
import { addressOf } from '../http/connection-limits.ts'
import type { RequestState } from '../http/http-app.ts'
import { keepConnection } from '../http/http-server.ts'
import type { UsersFile } from './users-file.ts'

type AskedContext = Pick<Koa.ParameterizedContext<RequestState>, 'req' | 'state'>

/**
 * Puts the user whose credentials the request has into the context's state, also when their role is less
 * than `needed`. `openedBy` is a setting that would let everybody in. Fails with unauthenticated,
 * insufficient-scope or too-many-logins.
 */
export async function authenticate(
  ctx: AskedContext,
  needed: Role,
  users: UsersFile,
  openedBy?: string,
): Promise<void> {
  const { authorization } = ctx.req.headers
  if (authorization === undefined) {
    const hint = openedBy === undefined ? '' : `; the setting ${openedBy}: true opens it to everybody`
    throw unauthenticated(
      `this path needs a user; send HTTP Basic credentials (curl -u NAME:PASSWORD)${hint}`,
    )
  }
  const user = await users.verify(authorization, addressOf(ctx.req.socket))
  if (user === undefined) {
    throw unauthenticated(
      parse(authorization) === undefined
        ? 'the Authorization header is not HTTP Basic (base64 of "user:password")'
        : 'the user name or the password is wrong',
    )
  }
  const { name, role, revoked } = user
  ctx.state.user = name
  ctx.state.role = role
  ctx.state.revoked = revoked
  keepConnection(ctx.req.socket)
  if (ROLES.indexOf(role) < ROLES.indexOf(needed)) {
    throw new CapfleetError('insufficient-scope', `user ${name} has the role ${role}; this needs ${needed}`, {
      members: { role, needed },
    })
  }
}

/**
 * For a path that is open to everybody: who sends the right credentials is known all the same, who sends
 * others is nobody.
 */
export async function recognize(ctx: AskedContext, users: UsersFile): Promise<void> {
  if (ctx.req.headers.authorization === undefined) return
  try {
    await authenticate(ctx, 'viewer', users)
  } catch (error) {
    if (!(error instanceof CapfleetError)) throw error
  }
}

function unauthenticated(message: string): CapfleetError {
  return new CapfleetError('unauthenticated', message)
}
