/** What a caller may do with rights that a user gave to a token or ticket. */
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
  /** Ids of the capfleet tokens that it was derived from; it is void when one of them is revoked. */
  readonly chain: readonly string[]
  readonly expiresMs: number
  /** When it was created. */
  readonly madeMs: number
  /** Mark of the password that it started from; it is void once the user has another password. */
  readonly mark?: string | undefined
}

/** The user who gave it, with their present rights. */
type Giver = Pick<Caller, 'sinceMs' | 'scopes' | 'bounds' | 'revoked'> &
  Partial<Pick<KnownUser, 'credential' | 'replaced'>>

/**
 * A user of an identity provider, about whom we know only what the grant contains. The grant does not outlive the
 * provider's token, which states what they may do.
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
   * The giver: the same object for as long as they have the same rights. Fails with unauthenticated if the grant
   * is void.
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

  /** The caller for a grant: limited to what `giver` may do and see. */
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
