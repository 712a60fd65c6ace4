/**
 * Sessions of the web page. A user who signs in gets a short-lived cookie that is renewed while the page is used.
 * All cookies of a session have one id, which is listed and revoked like that of a token.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { type Caller, markOf, type SessionCredential, UNBOUNDED } from '../../shared/base/caller.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import type { SharedTime } from '../../shared/base/shared-time.ts'
import type { Revocations } from './revocations.ts'
import { SESSION_TYPE, type SessionClaims } from './session-claims.ts'
import type { TokenKeys } from './token-keys.ts'
import type { TokenStore } from './token-store.ts'

export interface SessionsSettings {
  readonly issuer: string
  readonly audience: string
  /** Lifetime of the cookie in seconds, unless it is renewed. */
  readonly idleS: number
  readonly lifetimeS: number
}

export interface SessionsParts {
  readonly keys: TokenKeys
  readonly store: TokenStore
  readonly revocations: Revocations
  readonly clock: SharedTime
}

/** A caller who comes with a session. */
export interface SessionCaller extends Caller {
  readonly credential: SessionCredential
}

/** A session and its new cookie. */
export interface OpenSession {
  readonly credential: SessionCredential
  readonly token: string
}

/** Browsers drop cookies that are larger than this plus names and attributes. */
const TOKEN_BYTES_MAX = 3_584
const FORM_TOKEN_BYTES = 18

export class Sessions {
  readonly #parts: SessionsParts
  readonly #settings: SessionsSettings

  constructor(parts: SessionsParts, settings: SessionsSettings) {
    this.#parts = parts
    this.#settings = settings
  }

  /**
   * Starts a session for a caller who has just presented a password or a token, for the page at `path`. Fails with
   * unauthenticated, out-of-bounds, user-quota or scheduler-unavailable.
   */
  async begin(caller: Caller, path: string): Promise<OpenSession> {
    const origin = originFor(caller)
    const nowS = Math.floor(this.#parts.clock.nowMs() / 1_000)
    const endsS = Math.min(
      nowS + this.#settings.lifetimeS,
      origin.kind === 'token' ? Math.floor(origin.expiresMs / 1_000) : Number.POSITIVE_INFINITY,
    )
    const parents = origin.kind === 'token' ? origin.chain : []
    const id = randomUUID()
    const opened = this.#sign(caller, {
      kind: 'session',
      id,
      origin,
      chain: [...parents, id],
      beganMs: nowS * 1_000,
      expiresMs: 0,
      endsMs: endsS * 1_000,
      formToken: randomBytes(FORM_TOKEN_BYTES).toString('base64url'),
      path,
    })
    await this.#parts.store.keep({
      kind: 'session',
      id,
      user: caller.name,
      scopes: [...caller.scopes],
      bounds: caller.bounds,
      parents,
      note: undefined,
      createdMs: nowS * 1_000,
      expiresMs: endsS * 1_000,
    })
    return opened
  }

  /** Renews the session's cookie for another idle period. */
  renew(caller: SessionCaller): OpenSession {
    return this.#sign(caller, caller.credential)
  }

  /** Ends the session and whatever runs under it. Fails with scheduler-unavailable. */
  async end({ credential: { id, endsMs } }: SessionCaller): Promise<void> {
    const { store, revocations } = this.#parts
    const ended = { id, expiresMs: endsMs }
    await store.revoke(ended)
    revocations.add(ended)
  }

  #sign(caller: Caller, session: SessionCredential): OpenSession {
    const { issuer, audience, idleS } = this.#settings
    const { id, origin, chain, beganMs, endsMs, formToken, path } = session
    const nowS = Math.floor(this.#parts.clock.nowMs() / 1_000)
    const claims: SessionClaims = {
      iss: issuer,
      aud: audience,
      sub: caller.name,
      jti: id,
      iat: beganMs / 1_000,
      exp: Math.min(nowS + idleS, endsMs / 1_000),
      scope: [...caller.scopes].join(' '),
      // A user who signed in with a password is bounded by the users file as it is at the time of each request.
      bounds: (origin.kind === 'password' ? UNBOUNDED : caller.bounds) as SessionClaims['bounds'],
      by: origin.kind,
      mark: markOf(session),
      parents: chain.slice(0, -1),
      ends: endsMs / 1_000,
      form: formToken,
      path,
    }
    const { kid, signs, algorithm } = this.#parts.keys.newest
    const token = jwt.sign(claims, signs, { algorithm, header: { alg: algorithm, kid, typ: SESSION_TYPE } })
    if (token.length > TOKEN_BYTES_MAX) throw tooLarge(token.length)
    return { credential: { ...session, expiresMs: claims.exp * 1_000 }, token }
  }
}

/** Fails with unauthenticated. */
function originFor({ credential }: Caller): SessionCredential['origin'] {
  if (credential.kind === 'password' || credential.kind === 'token') return credential
  throw new CapfleetError(
    'unauthenticated',
    'a session starts with a password or a token; send it in the header Authorization',
  )
}

function tooLarge(bytes: number): CapfleetError {
  return new CapfleetError(
    'out-of-bounds',
    `the bounds of your token make a cookie of ${bytes} bytes, and browsers store at most ${TOKEN_BYTES_MAX}; sign in with your password`,
  )
}
