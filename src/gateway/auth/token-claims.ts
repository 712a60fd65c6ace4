/** The claims of capfleet's own tokens: what their issuer granted, and until when. */
import { z } from 'zod'
import { keptBoundsSchema } from '../../shared/auth/bounds.ts'
import type { SessionCredential, TokenCredential } from '../../shared/base/caller.ts'
import { SCOPES, type Scope } from '../../shared/base/scopes.ts'
import { type CompactToken, refusedToken } from './compact-token.ts'
import type { Grant } from './grants.ts'

/** The type of our tokens alone, so that nothing else signed with the same keys is accepted as one (RFC 9068). */
export const TOKEN_TYPE = 'at+jwt'

/** Maximum length of a chain of tokens issued by tokens, including the last one. */
export const CHAIN_MAX = 4

const seconds = z.int().min(0)

/** Claims that tokens and session cookies have in common. */
export const GRANT_CLAIMS = {
  iss: z.string(),
  aud: z.string(),
  sub: z.string().min(1),
  jti: z.uuid(),
  iat: seconds,
  exp: seconds,
  scope: z.string(),
  bounds: keptBoundsSchema,
}

/**
 * The claims we write. A signed token with other claims is from another version, or from someone else who has the
 * key.
 */
const claimsSchema = z.strictObject({
  ...GRANT_CLAIMS,
  /** Ids of the tokens that it was derived from, oldest first. */
  parents: z.array(z.uuid()).max(CHAIN_MAX - 1),
})
export type TokenClaims = z.infer<typeof claimsSchema>

export interface GrantedToken {
  readonly grant: Grant
  readonly credential: TokenCredential | SessionCredential
}

/** REQUIRES: the signature is valid. Fails with unauthenticated. */
export function readClaims({ head, claims }: CompactToken): GrantedToken {
  const { success, data } = claimsSchema.safeParse(claims)
  if (!success || head.typ !== TOKEN_TYPE) throw refusedToken('claims', 'was not issued by this gateway')
  const { sub: user, jti: id, iat, scope, bounds, parents } = data
  const chain = [...parents, id]
  const expiresMs = data.exp * 1_000
  return {
    grant: { user, scopes: scopesIn(scope), bounds, chain, expiresMs, madeMs: iat * 1_000 },
    credential: { kind: 'token', id, chain, expiresMs },
  }
}

/** The known scopes in the text; another version may have more. */
export function scopesIn(text: string): readonly Scope[] {
  const words = text.split(' ')
  return SCOPES.filter((scope) => words.includes(scope))
}
