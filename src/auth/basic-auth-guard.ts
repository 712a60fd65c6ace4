import { parse } from 'basic-auth'
import { CapfleetError } from '../base/error.ts'
import { ROLES, type Role, type User, type UsersFile } from '../base/users-file.ts'

/**
 * The user who sent `authorization` (the header's value), if their role allows `role`. Fails with
 * unauthenticated or insufficient-scope.
 */
export async function authenticate(
  users: UsersFile,
  authorization: string | undefined,
  role: Role,
): Promise<User> {
  if (authorization === undefined)
    throw unauthenticated('this path needs a user; send HTTP Basic credentials')
  const user = await users.verify(authorization)
  if (user === undefined) {
    throw unauthenticated(
      parse(authorization) === undefined
        ? 'the Authorization header is not HTTP Basic (base64 of "user:password")'
        : 'the user name or the password is wrong',
    )
  }
  if (ROLES.indexOf(user.role) < ROLES.indexOf(role)) {
    throw new CapfleetError(
      'insufficient-scope',
      `user ${user.name} has the role ${user.role}; this needs ${role}`,
      { members: { role: user.role, needed: role } },
    )
  }
  return user
}

function unauthenticated(message: string): CapfleetError {
  return new CapfleetError('unauthenticated', message)
}
