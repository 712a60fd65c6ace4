/** Tokens that capfleet itself issues to a caller, with at most that caller's rights. */
import { randomUUID } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { boundsOf, joinBounds, type WrittenBounds } from '../../shared/auth/bounds.ts'
import { type Bounds, type Caller, originOf } from '../../shared/base/caller.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import type { Scope } from '../../shared/base/scopes.ts'
import type { SharedTime } from '../../shared/base/shared-time.ts'
import { badParameter } from '../../shared/query/query-parameters.ts'
import { type CompactToken, TOKEN_BYTES_MAX } from './compact-token.ts'
import { readSessionClaims, SESSION_TYPE } from './session-claims.ts'
import { CHAIN_MAX, type GrantedToken, readClaims, TOKEN_TYPE, type TokenClaims } from './token-claims.ts'
import type { TokenKeys, VerificationKey } from './token-keys.ts'
import type { IssuedToken, TokenStore } from './token-store.ts'
import type { TrustedIssuer } from './token-verifier.ts'

export interface OwnTokensSettings {
  readonly issuer: string
  readonly audience: string
  readonly lifetimeS: number
  readonly lifetimeMaxS: number
}

/** The rights a caller wants the token to have. Default: all of their own. */
export interface WantedToken {
  readonly lifetimeS: number | undefined
  /** Instead of lifetimeS. */
  readonly expiresMs?: number | undefined
  readonly scopes: readonly Scope[] | undefined
  /** In addition to the caller's bounds. */
  readonly bounds: WrittenBounds
  readonly note: string | undefined
}

export interface NewToken {
  readonly token: string
  readonly issued: IssuedToken
}

export interface OwnTokensParts {
  readonly keys: TokenKeys
  readonly store: TokenStore
  readonly clock: SharedTime
}

export class OwnTokens implements TrustedIssuer {
  readonly #keys: TokenKeys
  readonly #store: TokenStore
  readonly #clock: SharedTime
  readonly #settings: OwnTokensSettings

  constructor({ keys, store, clock }: OwnTokensParts, settings: OwnTokensSettings) {
    this.#keys = keys
    this.#store = store
    this.#clock = clock
    this.#settings = settings
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

  read(token: CompactToken): GrantedToken {
    return token.head.typ === SESSION_TYPE ? readSessionClaims(token) : readClaims(token)
  }

  /**
   * Issues a new token for the caller. Fails with bad-parameter (it would have expired), insufficient-scope or
   * out-of-bounds (which name what the caller lacks), user-quota or scheduler-unavailable.
   */
  async issue(caller: Caller, wanted: WantedToken): Promise<NewToken> {
    const id = randomUUID()
    const createdS = Math.floor(this.#clock.nowMs() / 1_000)
    const issued: IssuedToken = {
      kind: 'token',
      id,
      user: caller.name,
      scopes: givenScopes(caller, wanted.scopes),
      bounds: givenBounds(caller, id, wanted.bounds),
      parents: parentsOf(caller),
      note: wanted.note,
      createdMs: createdS * 1_000,
      expiresMs: (createdS + this.#lifetimeOf(caller, createdS, wanted)) * 1_000,
    }
    const token = this.#sign(issued)
    await this.#store.keep(issued)
    return { token, issued }
  }

  #lifetimeOf(caller: Caller, nowS: number, { lifetimeS: givenS, expiresMs }: WantedToken): number {
    const { lifetimeS, lifetimeMaxS } = this.#settings
    const [param, wantedS] =
      expiresMs === undefined
        ? (['Lifetime', givenS] as const)
        : (['Expires', Math.floor(expiresMs / 1_000) - nowS] as const)
    if (wantedS !== undefined && wantedS <= 0)
      throw badParameter(
        param,
        `must be in the future, got ${new Date((nowS + wantedS) * 1_000).toISOString()}`,
      )
    if (wantedS !== undefined && wantedS > lifetimeMaxS)
      throw beyond(param, `is more than ${lifetimeMaxS} s from now, the maximum on this gateway`)
    const credential = originOf(caller.credential)
    const leftS = credential.kind === 'token' ? Math.floor(credential.expiresMs / 1_000) - nowS : lifetimeMaxS
    if (wantedS !== undefined && wantedS > leftS)
      throw beyond(
        param,
        `is longer than the remaining lifetime of your own token, which expires in ${leftS} s`,
      )
    return wantedS ?? Math.min(lifetimeS, leftS)
  }

  #sign({ id, user, scopes, bounds, parents, createdMs, expiresMs }: IssuedToken): string {
    const { issuer, audience } = this.#settings
    const claims: TokenClaims = {
      iss: issuer,
      aud: audience,
      sub: user,
      jti: id,
      iat: createdMs / 1_000,
      exp: expiresMs / 1_000,
      scope: scopes.join(' '),
      bounds: bounds as TokenClaims['bounds'],
      parents: [...parents],
    }
    const { kid, signs, algorithm } = this.#keys.newest
    const token = jwt.sign(claims, signs, { algorithm, header: { alg: algorithm, kid, typ: TOKEN_TYPE } })
    if (token.length <= TOKEN_BYTES_MAX) return token
    throw beyond(
      'Filter',
      `together with your own bounds makes a token of ${token.length} bytes; at most ${TOKEN_BYTES_MAX} are allowed`,
    )
  }
}

function givenScopes({ scopes }: Caller, wanted: readonly Scope[] | undefined): readonly Scope[] {
  if (wanted === undefined) return [...scopes]
  const missing = wanted.filter((scope) => !scopes.has(scope))
  if (missing.length === 0) return wanted
  throw new CapfleetError(
    'insufficient-scope',
    `Scopes: you do not have ${missing.join(', ')} yourself, only ${[...scopes].join(', ')}`,
    { param: 'Scopes', members: { scopes: [...scopes], needed: missing } },
  )
}

function givenBounds({ bounds }: Caller, id: string, wanted: WrittenBounds): Bounds {
  refuseMore('SpanMax', wanted.spanMaxS, bounds.spanMaxS)
  for (const { bytesPerDay, streamsMax } of bounds.quotas) {
    refuseMore('BytesPerDay', wanted.bytesPerDay, bytesPerDay)
    refuseMore('StreamsMax', wanted.streamsMax, streamsMax)
  }
  return joinBounds(bounds, boundsOf(id, wanted))
}

function refuseMore(param: string, wanted: number | undefined, own: number | undefined): void {
  if (wanted === undefined || own === undefined || wanted <= own) return
  throw beyond(param, `is more than your own ${own}; ask for that or less`)
}

/** Fails with out-of-bounds. */
function parentsOf(caller: Caller): readonly string[] {
  const credential = originOf(caller.credential)
  if (credential.kind !== 'token') return []
  if (credential.chain.length < CHAIN_MAX) return credential.chain
  throw new CapfleetError(
    'out-of-bounds',
    `your token is already derived through ${CHAIN_MAX - 1} other tokens; create the new one with your password or an earlier token`,
  )
}

function beyond(param: string, problem: string): CapfleetError {
  return new CapfleetError('out-of-bounds', `${param} ${problem}`, { param })
}
