/** Who asks, by HTTP Basic (RFC 7617), for both HTTP programs. */
import { parse } from 'basic-auth'
import { CapfleetError } from './error.ts'
import type { RequestState } from './http-app.ts'
import { ROLES, type Role, type UsersFile } from './users-file.ts'

/**
 * Puts the user whose credentials `authorization` (the header's value) holds into `state`, also when
 * their role is less than `needed`. Fails with unauthenticated or insufficient-scope.
 */
export async function authenticate(
  state: RequestState,
  authorization: string | undefined,
  needed: Role,
  users: UsersFile,
): Promise<void> {
  if (authorization === undefined)
    throw unauthenticated('this path needs a user; send HTTP Basic credentials (curl -u NAME:PASSWORD)')
  const user = await users.verify(authorization)
  if (user === undefined) {
    throw unauthenticated(
      parse(authorization) === undefined
        ? 'the Authorization header is not HTTP Basic (base64 of "user:password")'
        : 'the user name or the password is wrong',
    )
  }
  const { name, role } = user
  state.user = name
  state.role = role
  if (ROLES.indexOf(role) < ROLES.indexOf(needed)) {
    throw new CapfleetError('insufficient-scope', `user ${name} has the role ${role}; this needs ${needed}`, {
      members: { role, needed },
    })
  }
}

function unauthenticated(message: string): CapfleetError {
  return new CapfleetError('unauthenticated', message)
}
