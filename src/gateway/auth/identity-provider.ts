/**
 * An identity provider: its tokens state who a user is and which groups they are in; the configuration maps groups
 * to rights.
 */
import { z } from 'zod'
import { boundsOf } from '../../shared/auth/bounds.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import { SCOPES, SCOPES_OF_ROLE } from '../../shared/base/scopes.ts'
import { type CompactToken, refusedToken } from './compact-token.ts'
import type { ProviderKeys } from './provider-keys.ts'
import type { ProviderSettings } from './provider-settings.ts'
import type { GrantedToken } from './token-claims.ts'
import type { VerificationKey } from './token-keys.ts'
import type { TrustedIssuer } from './token-verifier.ts'

/** Values of `typ` that providers give to access tokens; many set none. */
const TOKEN_TYPES: ReadonlySet<string> = new Set(['at+jwt', 'application/at+jwt', 'jwt'])
const USER_NAME = /^[^\p{Cc}\p{Zl}\p{Zp}]{1,128}$/u

const claimsSchema = z.looseObject({
  exp: z.number(),
  iat: z.number().optional(),
  jti: z.string().min(1).max(128).optional(),
})
const groupsSchema = z.union([z.array(z.string()), z.string().transform((group) => [group])])

export class IdentityProvider implements TrustedIssuer {
  readonly #settings: ProviderSettings
  readonly #keys: ProviderKeys

  constructor(settings: ProviderSettings, keys: ProviderKeys) {
    this.#settings = settings
    this.#keys = keys
  }

  get issuer(): string {
    return this.#settings.issuer
  }

  get audience(): string {
    return this.#settings.audience
  }

  find(kid: string): VerificationKey | undefined {
    return this.#keys.find(kid)
  }

  refresh(): Promise<void> {
    return this.#keys.refresh()
  }

  /** The first group in the configuration that the user is in decides role and bounds together. */
  read({ head, claims }: CompactToken): GrantedToken {
    const { success, data } = claimsSchema.safeParse(claims)
    const isOfType = head.typ === undefined || TOKEN_TYPES.has(head.typ.toLowerCase())
    if (!success || !isOfType) throw refusedToken('claims', 'is not an access token')
    const user = this.#userOf(claims)
    const { group: _group, role, ...bounds } = this.#roleOf(user, claims)
    const expiresMs = data.exp * 1_000
    return {
      grant: {
        user,
        scopes: SCOPES.filter((scope) => SCOPES_OF_ROLE[role].has(scope)),
        bounds: boundsOf(user, bounds),
        chain: [],
        expiresMs,
        // No check against the age of the account: the provider decides whose name it is.
        madeMs: 0,
      },
      credential: {
        kind: 'token',
        id: `${this.#settings.name}:${data.jti ?? data.iat}`,
        chain: [],
        expiresMs,
      },
    }
  }

  #userOf(claims: CompactToken['claims']): string {
    const { name, userClaim } = this.#settings
    const user = claimAt(claims, userClaim)
    if (typeof user === 'string' && USER_NAME.test(user)) return `${name}:${user}`
    throw refusedToken('claims', `names no user in its claim ${userClaim}`)
  }

  #roleOf(user: string, claims: CompactToken['claims']): ProviderSettings['roles'][number] {
    const { groupsClaim, roles } = this.#settings
    const groups = groupsSchema.safeParse(claimAt(claims, groupsClaim) ?? []).data ?? []
    const found = roles.find(({ group }) => groups.includes(group))
    if (found !== undefined) return found
    throw new CapfleetError(
      'insufficient-scope',
      `${user} is not in a group with rights here; the claim ${groupsClaim} of the token lists the groups`,
      { tokenFlaw: 'no-rights', members: { scopes: [] } },
    )
  }
}

/**
 * Looks up a claim by its name, which may contain dots (such as a URL), or by its path through nested claims:
 * realm_access.roles.
 */
function claimAt(claims: CompactToken['claims'], path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  let at: unknown = claims
  for (const name of path.split('.')) {
    if (typeof at !== 'object' || at === null || Array.isArray(at) || !Object.hasOwn(at, name))
      return undefined
    at = (at as Record<string, unknown>)[name]
  }
  return at
}
