import { type Bounds, type Caller, UNBOUNDED } from '../../../src/shared/base/caller.ts'
import { type Role, SCOPES_OF_ROLE } from '../../../src/shared/base/scopes.ts'

/** A caller with a password, whose access is only revoked if `revoked` says so. */
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
