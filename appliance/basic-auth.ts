import { parse } from 'basic-auth'
import { CapfleetError } from '../src/base/error.ts'
import { ROLES, type Role, type UsersFile } from '../src/base/users-file.ts'
import type { ApplianceContext } from './appliance-parts.ts'

/**
 * Admits the request when its HTTP Basic credentials are a user's whose role is `needed` or more,
 * and puts the user's name into the request's state. Fails with unauthenticated, insufficient-scope.
 */
export async function requireRole(ctx: ApplianceContext, users: UsersFile, needed: Role): Promise<void> {
  const authorization = ctx.get('Authorization')
  const user = await users.verify(authorization)
  if (user === undefined) {
    throw new CapfleetError(
      'unauthenticated',
      parse(authorization) === undefined
        ? 'send a user name and password (curl -u NAME:PASSWORD)'
        : 'the user name or the password is wrong',
    )
  }
  ctx.state.user = user.name
  if (ROLES.indexOf(user.role) < ROLES.indexOf(needed)) {
    throw new CapfleetError(
      'insufficient-scope',
      `this needs the role ${needed}; ${user.name} has ${user.role}`,
    )
  }
}
