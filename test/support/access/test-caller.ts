import { type Bounds, type Caller, UNBOUNDED } from '../../../src/shared/base/caller.ts'
import { type Role, SCOPES_OF_ROLE } from '../../../src/shared/base/scopes.ts'

/** Somebody with a password, whom nobody takes anything from unless `revoked` says so. */
export function callerNamed(
  name: string,
  { role = 'full', bounds = UNBOUNDED, revoked = new AbortController().signal }: CallerTraits = {},
): Caller {
  return {
    name,
    scopes: SCOPES_OF_ROLE[role],
    bounds,
    credential: { kind: 'password', mark: 'test' },
    revoked,
  }
}

interface CallerTraits {
  readonly role?: Role
  readonly bounds?: Bounds
  readonly revoked?: AbortSignal
}
