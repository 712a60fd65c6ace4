import type { Scope } from './scopes.ts'

/** A caller and their rights. */
export interface Caller {
  /** Name of the user; for a user of an identity provider `PROVIDER:NAME`. */
  readonly name: string
  /** Since when the name has been theirs. Default: always. */
  readonly sinceMs?: number | undefined
  readonly scopes: ReadonlySet<Scope>
  readonly bounds: Bounds
  readonly credential: Credential
  /** Aborts, with an error for the caller as its reason, when they lose any of these rights. */
  readonly revoked: AbortSignal
}

/**
 * Whether something that was created for a user of this name belongs to the caller: someone else may have had the name
 * before.
 */
export function isOf(
  { name, sinceMs = 0 }: Pick<Caller, 'name' | 'sinceMs'>,
  made: { readonly user: string; readonly madeMs: number },
): boolean {
  return made.user === name && made.madeMs >= sinceMs
}

/** How a caller was identified; the id is that of the token or ticket. */
export type Credential =
  | PasswordCredential
  | TokenCredential
  | SessionCredential
  | { readonly kind: 'ticket'; readonly id: string }

export interface PasswordCredential {
  readonly kind: 'password'
  /** Changes when the user's password changes; no password can be guessed from it. */
  readonly mark: string
}

export interface TokenCredential {
  readonly kind: 'token'
  readonly id: string
  /**
   * Ids of the capfleet tokens that it was derived from, oldest first, including itself; empty for a provider's token.
   */
  readonly chain: readonly string[]
  readonly expiresMs: number
}

/** The credential of someone who has signed in on the page. */
export interface SessionCredential {
  readonly kind: 'session'
  readonly id: string
  /** What they signed in with; whatever they derive from their rights is created as if they had presented that. */
  readonly origin: PasswordCredential | TokenCredential
  /** See the member `chain` of tokens. */
  readonly chain: readonly string[]
  readonly beganMs: number
  /** When it ends unless it is renewed. */
  readonly expiresMs: number
  /** When it ends, however often it is renewed. */
  readonly endsMs: number
  /** Secret that the page sends with each change; no other page can know it. */
  readonly formToken: string
  /** Path to which browsers send the cookie. */
  readonly path: string
}

/** What a caller presented, or signed in with before. */
export function originOf(credential: Credential): Exclude<Credential, SessionCredential> {
  return credential.kind === 'session' ? credential.origin : credential
}

/** Mark of the password that a caller presented, or signed in with before; undefined if it was not a password. */
export function markOf(credential: Credential): string | undefined {
  const origin = originOf(credential)
  return origin.kind === 'password' ? origin.mark : undefined
}

/**
 * Restrictions on all of a caller's rights; what lies outside does not exist for them. A token derived from them can
 * only add to the bounds.
 */
export interface Bounds {
  /** Selections of devices in the form of Device=; a device must be in each. */
  readonly devices: readonly string[]
  /** BPF filters; a packet must pass each. */
  readonly filters: readonly string[]
  /** Maximum time range of one download or export, s. */
  readonly spanMaxS?: number | undefined
  /** None of them may be exceeded. */
  readonly quotas: readonly Quota[]
}

/** The consumption allowed to a user or a token; what a token consumes counts for its issuer, too. */
export interface Quota {
  /** Name of the user, or id of the token. */
  readonly holder: string
  /** Bytes of downloads and of exports' files per UTC day. */
  readonly bytesPerDay?: number | undefined
  /** Downloads that run or wait at the same time. */
  readonly streamsMax?: number | undefined
}

export const UNBOUNDED: Bounds = { devices: [], filters: [], quotas: [] }
