/** The contents of a session cookie: a signed token of a type of its own, which is not accepted for anything else. */
import { z } from 'zod'
import { markOf, type SessionCredential } from '../../shared/base/caller.ts'
import { type CompactToken, refusedToken } from './compact-token.ts'
import { CHAIN_MAX, GRANT_CLAIMS, type GrantedToken, scopesIn } from './token-claims.ts'

export const SESSION_TYPE = 'session+jwt'

const claimsSchema = z.strictObject({
  ...GRANT_CLAIMS,
  /** What the user signed in with. */
  by: z.enum(['password', 'token']),
  /** Shows whether the user still has that password (users-file.ts). */
  mark: z.string().optional(),
  /** Ids of the capfleet tokens that it was derived from, oldest first. */
  parents: z.array(z.uuid()).max(CHAIN_MAX),
  /** When the session ends, however often it is renewed. */
  ends: z.int().min(0),
  form: z.string().min(1),
  path: z.string().startsWith('/'),
})
export type SessionClaims = z.infer<typeof claimsSchema>

/** REQUIRES: the signature is valid and the type is that of sessions. Fails with unauthenticated. */
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
