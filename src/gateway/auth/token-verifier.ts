/** Turns the text of a bearer token into its caller, whoever issued it. */
import { hash, randomBytes } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { LRUCache } from 'lru-cache'
import type { Caller } from '../../shared/base/caller.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import type { Metrics } from '../../shared/base/metrics.ts'
import type { SharedTime } from '../../shared/base/shared-time.ts'
import { type CompactToken, readCompactToken, refusedToken } from './compact-token.ts'
import type { Grants } from './grants.ts'
import type { GrantedToken } from './token-claims.ts'
import type { VerificationKey } from './token-keys.ts'

/** An issuer whose tokens are accepted: capfleet itself or an identity provider. */
export interface TrustedIssuer {
  /** The claim `iss` of its tokens. */
  readonly issuer: string
  readonly audience: string
  /** The key of this name, if known. */
  find(kid: string): VerificationKey | undefined
  /** Fetches keys that may be new. Absent if all keys are known already. */
  refresh?(): Promise<void>
  /** What the token grants. REQUIRES: its signature is valid. Fails with unauthenticated or insufficient-scope. */
  read(token: CompactToken): GrantedToken
}

export interface TokenVerifierOptions {
  /** Each has a unique `issuer`. */
  readonly issuers: readonly TrustedIssuer[]
  readonly grants: Grants
  /** The clock that token expiry is judged by. */
  readonly clock: SharedTime
  readonly metrics: Metrics
}

/** How far the clocks of issuers may differ from ours. */
const CLOCK_TOLERANCE_S = 5
/** At most this many; with `max` the table would have its full size from the start. */
const VERIFIED = { maxSize: 10_000, sizeCalculation: () => 1 }
const WAYS = { token: 'bearer token', session: 'cookie' } as const

/** A token whose signature has been verified. */
interface VerifiedToken {
  readonly by: TrustedIssuer
  readonly kid: string
  readonly key: VerificationKey
  readonly granted: GrantedToken
  /** The giver as of the last time the token was presented. */
  readonly giver: Pick<Caller, 'revoked'>
  readonly caller: Caller
}

export class TokenVerifier {
  readonly #issuers: ReadonlyMap<string, TrustedIssuer>
  readonly #grants: Grants
  readonly #clock: SharedTime
  readonly #count: (result: string) => void
  /**
   * Hashed together with each token, so that the duration of a look-up reveals nothing about a token. An HMAC
   * would reveal no less and take fifteen times as long.
   */
  readonly #secret = randomBytes(32).toString('hex')
  readonly #verified = new LRUCache<string, VerifiedToken>(VERIFIED)

  constructor({ issuers, grants, clock, metrics }: TokenVerifierOptions) {
    this.#issuers = new Map(issuers.map((one) => [one.issuer, one]))
    this.#grants = grants
    this.#clock = clock
    const verified = metrics.counter(
      'tokens_verified_total',
      'Requests with a bearer token or a session cookie, by result: accepted, or why it was rejected',
      ['result'],
      [{ result: 'accepted' }],
    )
    this.#count = (result) => verified.inc({ result })
  }

  /**
   * `kind`: a bearer token, or the session of a cookie. Fails with unauthenticated, or with insufficient-scope for
   * a known user without any rights.
   */
  async verify(token: string, kind: 'token' | 'session' = 'token'): Promise<Caller> {
    try {
      const caller = await this.#callerOf(token)
      if (caller.credential.kind !== kind) throw refusedToken('claims', `cannot be used as a ${WAYS[kind]}`)
      this.#count('accepted')
      return caller
    } catch (error) {
      this.#count((error instanceof CapfleetError && error.details.tokenFlaw) || 'error')
      throw error
    }
  }

  async #callerOf(token: string): Promise<Caller> {
    const name = hash('sha256', this.#secret + token, 'base64')
    const known = this.#verified.get(name)
    const isKnown =
      known !== undefined && known.by.find(known.kid) === known.key && !hasExpired(known, this.#clock.nowMs())
    const { granted, ...signed } = isKnown ? known : await this.#verify(token)
    const giver = this.#grants.giverOf(granted.grant)
    if (isKnown && known.giver === giver) return known.caller
    const caller = this.#grants.callerOf(granted.grant, giver, granted.credential)
    this.#verified.set(name, { ...signed, granted, giver, caller })
    return caller
  }

  async #verify(token: string): Promise<Pick<VerifiedToken, 'by' | 'kid' | 'key' | 'granted'>> {
    const read = readCompactToken(token)
    const { kid } = read.head
    const { iss } = read.claims
    const by = typeof iss === 'string' ? this.#issuers.get(iss) : undefined
    if (by === undefined) throw refusedToken('unknown-issuer', 'is from an issuer that is not trusted here')
    if (by.find(kid) === undefined) await by.refresh?.()
    const key = by.find(kid)
    if (key === undefined)
      throw refusedToken('unknown-key', 'is signed with a key that its issuer does not have')
    verifySignature(token, key, { by, nowMs: this.#clock.nowMs() })
    return { by, kid, key, granted: by.read(read) }
  }
}

function hasExpired({ granted: { grant } }: VerifiedToken, nowMs: number): boolean {
  return nowMs >= grant.expiresMs + CLOCK_TOLERANCE_S * 1_000
}

function verifySignature(
  token: string,
  { key, algorithms }: VerificationKey,
  { by: { issuer, audience }, nowMs }: { readonly by: TrustedIssuer; readonly nowMs: number },
): void {
  try {
    jwt.verify(token, key, {
      algorithms: [...algorithms],
      issuer,
      audience,
      clockTolerance: CLOCK_TOLERANCE_S,
      clockTimestamp: Math.floor(nowMs / 1_000),
    })
  } catch (error) {
    if (error instanceof jwt.TokenExpiredError) throw refusedToken('expired', 'has expired')
    if (error instanceof jwt.NotBeforeError) throw refusedToken('claims', 'is not valid yet')
    const { message } = error as Error
    if (/^jwt (audience|issuer)|^invalid (exp|nbf)/.test(message))
      throw refusedToken('claims', 'is not for this gateway, or has no expiry time')
    throw refusedToken('signature', 'has a wrong signature')
  }
}
