/** What the cookie of a session says: a signed token of a type of its own, which is good as nothing else. */
import { z } from 'zod'
import { markOf, type SessionCredential } from '../../shared/base/caller.ts'
import { type CompactToken, refusedToken } from './compact-token.ts'
import { CHAIN_MAX, GRANT_CLAIMS, type GrantedToken, scopesIn } from './token-claims.ts'

export const SESSION_TYPE = 'session+jwt'

const claimsSchema = z.strictObject({
  ...GRANT_CLAIMS,
  /** By what its user has signed in. */
  by: z.enum(['password', 'token']),
  /** Tells whether that password is still the user's (users-file.ts). */
  mark: z.string().optional(),
  /** Ids of our own tokens that it hangs on, oldest first. */
  parents: z.array(z.uuid()).max(CHAIN_MAX),
  /** When it ends, however often it is renewed. */
  ends: z.int().min(0),
  form: z.string().min(1),
  path: z.string().startsWith('/'),
})
export type SessionClaims = z.infer<typeof claimsSchema>

/** REQUIRES: the signature is right, and the type that of sessions. Fails with unauthenticated. */
export function readSessionClaims({ claims }: CompactToken): GrantedToken {
  const { success, data } = claimsSchema.safeParse(claims)
  if (!success) throw refusedToken('claims', 'is not a session cookie of this gateway')
  const { sub: user, scope, bounds } = data
  const credential = credentialOf(data)
  const { chain, expiresMs, beganMs: madeMs } = credential
  const grant = { user, scopes: scopesIn(scope), bounds, chain, expiresMs, madeMs, mark: markOf(credential) }
  return { grant, credential }
}

function credentialOf({
  jti: id,
  by,
  mark = '',
  parents,
  iat,
  exp,
  ends,
  form,
  path,
}: SessionClaims): SessionCredential {
  const [expiresMs, endsMs] = [exp * 1_000, ends * 1_000]
  return {
    kind: 'session',
    id,
    origin:
      by === 'password'
        ? { kind: 'password', mark }
        : { kind: 'token', id: parents.at(-1) ?? id, chain: parents, expiresMs: endsMs },
    chain: [...parents, id],
    beganMs: iat * 1_000,
    expiresMs,
    endsMs,
    formToken: form,
    path,
  }
}
