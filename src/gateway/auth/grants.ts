/** What callers have of the rights that a user gave to a token or a ticket. */
import { joinBounds } from '../../shared/auth/bounds.ts'
import type { KnownUser, UsersFile } from '../../shared/auth/users-file.ts'
import { type Bounds, type Caller, type Credential, isOf, UNBOUNDED } from '../../shared/base/caller.ts'
import { SCOPES, type Scope } from '../../shared/base/scopes.ts'
import { refusedToken } from './compact-token.ts'
import type { Revocations } from './revocations.ts'

export interface Grant {
  readonly user: string
  readonly scopes: readonly Scope[]
  readonly bounds: Bounds
  /** Ids of our own tokens that it hangs on: it is worth nothing when one of them is revoked. */
  readonly chain: readonly string[]
  readonly expiresMs: number
  /** When it was made. */
  readonly madeMs: number
  /** Of the password by which it began: it is worth nothing when its user has another one. */
  readonly mark?: string | undefined
}

/** Whoever gave it, as they are now. */
type Giver = Pick<Caller, 'sinceMs' | 'scopes' | 'bounds' | 'revoked'> &
  Partial<Pick<KnownUser, 'credential' | 'replaced'>>

/**
 * A user of an identity provider, of whom we know nothing beside what is written with a grant. It does not outlive the
 * provider's own token, which told what they may do.
 */
const PROVIDED: Giver = {
  scopes: new Set(SCOPES),
  bounds: UNBOUNDED,
  revoked: new AbortController().signal,
}

export class Grants {
  readonly #users: Pick<UsersFile, 'now'>
  readonly #revocations: Revocations
  readonly #providers: ReadonlySet<string>

  /** `providers` are the names of identity providers. */
  constructor(users: Pick<UsersFile, 'now'>, revocations: Revocations, providers: ReadonlySet<string>) {
    this.#users = users
    this.#revocations = revocations
    this.#providers = providers
  }

  /**
   * The giver: the same object for as long as they have the same rights. Fails with unauthenticated when the grant is
   * worth nothing any more.
   */
  giverOf({ user, chain, madeMs, mark }: Pick<Grant, 'user' | 'chain' | 'madeMs' | 'mark'>): Giver {
    if (chain.some((id) => this.#revocations.has(id))) throw refusedToken('revoked', 'has been revoked')
    const [provider, name] = user.split(':', 2)
    const isProvided = name !== undefined && this.#providers.has(provider ?? '')
    const giver = isProvided ? PROVIDED : this.#users.now(user)
    if (giver === undefined) throw refusedToken('revoked', 'belongs to a user who no longer exists')
    if (!isOf({ name: user, sinceMs: giver.sinceMs }, { user, madeMs }))
      throw refusedToken('revoked', 'belongs to a former user of the same name')
    if (mark === undefined || mark === giver.credential?.mark) return giver
    throw refusedToken('revoked', 'was started with a password that its user has since changed')
  }

  /** Whoever comes with the grant: what `giver` may not do, and does not see, they may not, and do not, either. */
  callerOf(
    { user, scopes, bounds, chain, expiresMs, mark }: Grant,
    giver: Giver,
    credential: Credential,
  ): Caller {
    const replaced = mark === undefined || giver.replaced === undefined ? [] : [giver.replaced]
    const ofChain = chain.map((id) => this.#revocations.signalOf(id, expiresMs))
    return {
      name: user,
      sinceMs: giver.sinceMs,
      scopes: new Set(scopes.filter((scope) => giver.scopes.has(scope))),
      bounds: joinBounds(giver.bounds, bounds),
      credential,
      revoked: AbortSignal.any([giver.revoked, ...replaced, ...ofChain]),
    }
  }
}
