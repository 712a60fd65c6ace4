/** The tokens revoked on any gateway. Polled from Redis, so that requests need not ask. */
import { LRUCache } from 'lru-cache'
import { CapfleetError } from '../../shared/base/error.ts'
import type { Log } from '../../shared/base/log.ts'
import type { Metrics } from '../../shared/base/metrics.ts'
import type { SharedTime } from '../../shared/base/shared-time.ts'
import type { RevokedToken, TokenStore } from './token-store.ts'

export interface RevocationsOptions {
  readonly store: TokenStore
  readonly clock: SharedTime
  readonly metrics: Metrics
  readonly log: Log
}

/** A revocation must reach every gateway within 5 s. */
const LOOK_MS = 2_000
/** A revoked token is remembered this long after it expired: to a gateway whose clock is late it has not expired yet. */
const KEPT_AFTER_EXPIRY_MS = 60_000
/**
 * Streams continue after their token has expired. For this long they can still be cut by revoking the token that theirs
 * was derived from.
 */
const STREAM_MAX_MS = 86_400_000
const SIGNALS_MAX = 100_000

export class Revocations implements AsyncDisposable {
  readonly #store: TokenStore
  readonly #clock: SharedTime
  readonly #log: Log
  readonly #revoked = new Map<string, RevokedToken>()
  /** Made for the first stream of a token: it takes the memory of all its entries at once, and tens of milliseconds. */
  #controllers: LRUCache<string, AbortController> | undefined
  readonly #timer: NodeJS.Timeout
  /** The store's revocation number at the last poll. */
  #look: number
  #looking: Promise<void> | undefined
  #isFailing = false

  private constructor({ store, clock, metrics, log }: RevocationsOptions, look: number) {
    this.#store = store
    this.#clock = clock
    this.#log = log
    this.#look = look
    this.#timer = setInterval(() => this.#lookOnce(), LOOK_MS)
    this.#timer.unref()
    metrics.gauge('token_revocations', 'Revoked tokens that have not expired yet', [], (gauge) =>
      gauge.set(this.#revoked.size),
    )
  }

  /** Resolves when all revocations so far are known. Fails with scheduler-unavailable. */
  static async start(options: RevocationsOptions): Promise<Revocations> {
    const { look, revoked } = await options.store.revokedSince(0)
    const revocations = new Revocations(options, look)
    for (const token of revoked) revocations.add(token)
    return revocations
  }

  has(id: string): boolean {
    return this.#revoked.has(id)
  }

  /** Aborts when the token of this id is revoked. `expiresMs` is when whatever depends on it expires. */
  signalOf(id: string, expiresMs: number): AbortSignal {
    this.#controllers ??= new LRUCache({ max: SIGNALS_MAX })
    const controller = this.#controllers.get(id) ?? new AbortController()
    const neededMs = expiresMs - this.#clock.nowMs() + STREAM_MAX_MS
    const ttl = Math.max(neededMs, this.#controllers.getRemainingTTL(id))
    this.#controllers.set(id, controller, { ttl })
    return controller.signal
  }

  /** Registers a token that was just revoked and ends everything that runs under it. */
  add(token: RevokedToken): void {
    this.#revoked.set(token.id, token)
    this.#controllers?.get(token.id)?.abort(REVOKED)
    this.#controllers?.delete(token.id)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.#looking
  }

  /** Ensures that only one poll runs at a time. If it fails, the known revocations stay. */
  #lookOnce(): void {
    this.#looking ??= this.#lookUp().finally(() => {
      this.#looking = undefined
    })
  }

  async #lookUp(): Promise<void> {
    try {
      const { look, inAll, revoked } = await this.#store.revokedSince(this.#look)
      this.#look = look
      for (const token of revoked) if (!this.has(token.id)) this.add(token)
      this.#forgetExpired()
      await this.#restoreLost(inAll)
      this.#isFailing = false
    } catch (err) {
      if (!this.#isFailing) this.#log.warn('token-revocations.unknown', { err })
      this.#isFailing = true
    }
  }

  /** Restores revocations that Redis has lost, so that gateways which start later also get them. */
  async #restoreLost(inAll: number): Promise<void> {
    const nowMs = this.#clock.nowMs()
    const known = [...this.#revoked.values()].filter(({ expiresMs }) => expiresMs > nowMs)
    if (known.length > inAll) await this.#store.restore(known)
  }

  #forgetExpired(): void {
    const beforeMs = this.#clock.nowMs() - KEPT_AFTER_EXPIRY_MS
    for (const { id, expiresMs } of this.#revoked.values()) if (expiresMs < beforeMs) this.#revoked.delete(id)
  }
}

const REVOKED = new CapfleetError('unauthenticated', 'the token has been revoked', { tokenFlaw: 'revoked' })
