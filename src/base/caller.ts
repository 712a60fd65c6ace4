import type { Scope } from './scopes.ts'

/** Who asks, and what they may have. */
export interface Caller {
  /** Name of the user; one of an identity provider is `PROVIDER:NAME`. */
  readonly name: string
  readonly scopes: ReadonlySet<Scope>
  readonly bounds: Bounds
  readonly credential: Credential
  /** Aborts, with an error for them as its reason, when they may no longer have what they have. */
  readonly revoked: AbortSignal
}

/** By what a caller is known; the id is of the token or the ticket. */
export type Credential =
  | { readonly kind: 'password' }
  | TokenCredential
  | { readonly kind: 'ticket'; readonly id: string }

export interface TokenCredential {
  readonly kind: 'token'
  readonly id: string
  /** Ids of our own tokens that it hangs on, oldest first, itself included; one of a provider hangs on none of ours. */
  readonly chain: readonly string[]
  readonly expiresMs: number
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
