import type { Scope } from './scopes.ts'

/** Who asks, and what they may have. */
export interface Caller {
  /** Name of the user; one of an identity provider is `PROVIDER:NAME`. */
  readonly name: string
  /** Since when the name is theirs; default: ever since. */
  readonly sinceMs?: number | undefined
  readonly scopes: ReadonlySet<Scope>
  readonly bounds: Bounds
  readonly credential: Credential
  /** Aborts, with an error for them as its reason, when they may no longer have what they have. */
  readonly revoked: AbortSignal
}

/** Whether what was made for a user of this name is the caller's: somebody else may have had the name before. */
export function isOf(
  { name, sinceMs = 0 }: Pick<Caller, 'name' | 'sinceMs'>,
  made: { readonly user: string; readonly madeMs: number },
): boolean {
  return made.user === name && made.madeMs >= sinceMs
}

/** By what a caller is known; the id is of the token or the ticket. */
export type Credential =
  | PasswordCredential
  | TokenCredential
  | SessionCredential
  | { readonly kind: 'ticket'; readonly id: string }

export interface PasswordCredential {
  readonly kind: 'password'
  /** Another one when the user has another password; no password can be guessed from it. */
  readonly mark: string
}

export interface TokenCredential {
  readonly kind: 'token'
  readonly id: string
  /** Ids of our own tokens that it hangs on, oldest first, itself included; one of a provider hangs on none of ours. */
  readonly chain: readonly string[]
  readonly expiresMs: number
}

/** Of somebody who has signed in at the page. */
export interface SessionCredential {
  readonly kind: 'session'
  readonly id: string
  /** By which they have signed in; what they make of their rights is made as if they had come with it. */
  readonly origin: PasswordCredential | TokenCredential
  /** As a token's. */
  readonly chain: readonly string[]
  readonly beganMs: number
  /** When it ends unless it is renewed. */
  readonly expiresMs: number
  /** When it ends, however often it is renewed. */
  readonly endsMs: number
  /** What the page sends with each change; no other page can know it. */
  readonly formToken: string
  /** Where browsers send the cookie. */
  readonly path: string
}

/** By which a caller has come, or has signed in before. */
export function originOf(credential: Credential): Exclude<Credential, SessionCredential> {
  return credential.kind === 'session' ? credential.origin : credential
}

/** Of the password by which a caller has come, or has signed in before; undefined: it was no password. */
export function markOf(credential: Credential): string | undefined {
  const origin = originOf(credential)
  return origin.kind === 'password' ? origin.mark : undefined
}

/**
 * What narrows everything that a caller may have; what lies outside is not there for them. Whoever gives some of their
 * rights to a token can only add to its bounds.
 */
export interface Bounds {
  /** Selections of devices as Device= has them; a device must be in each. */
  readonly devices: readonly string[]
  /** BPF filters; a packet must pass each. */
  readonly filters: readonly string[]
  /** The longest time range of one download or export, s. */
  readonly spanMaxS?: number | undefined
  /** Each must leave room. */
  readonly quotas: readonly Quota[]
}

/** What a user, or a token, may use up; what is taken by a token counts for its minter, too. */
export interface Quota {
  /** Name of the user, or id of the token. */
  readonly holder: string
  /** Bytes of downloads and of exports' files in a day of UTC. */
  readonly bytesPerDay?: number | undefined
  /** Downloads that run or wait at the same time. */
  readonly streamsMax?: number | undefined
}

export const UNBOUNDED: Bounds = { devices: [], filters: [], quotas: [] }
