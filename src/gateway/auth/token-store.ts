/** The tokens that were issued, in Redis: what each is worth and whether it was revoked, but never the token itself. */
import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'
import type { Bounds } from '../../shared/base/caller.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import type { Log } from '../../shared/base/log.ts'
import type { Scope } from '../../shared/base/scopes.ts'
import { askRedis } from '../redis/ask-redis.ts'
import { connectRedis, type RedisTarget } from '../redis/redis-connection.ts'
import { redisTimeMs } from '../redis/redis-time.ts'

/** A token as it was issued. */
export interface IssuedToken {
  /** Of a session nobody has a token: its cookies, which are made anew again and again, have its id. */
  readonly kind: 'token' | 'session'
  readonly id: string
  readonly user: string
  readonly scopes: readonly Scope[]
  readonly bounds: Bounds
  /** Ids of the tokens that it hangs on, oldest first. */
  readonly parents: readonly string[]
  readonly note: string | undefined
  readonly createdMs: number
  readonly expiresMs: number
}

export interface TokenRecord extends IssuedToken {
  readonly revokedMs: number | undefined
}

export interface RevokedToken {
  readonly id: string
  readonly expiresMs: number
}

export interface RevocationsSeen {
  readonly look: number
  /** How many Redis has in all that have not expired by themselves. */
  readonly inAll: number
  readonly revoked: readonly RevokedToken[]
}

export interface TokenStoreOptions {
  readonly redis: RedisTarget
  readonly keyPrefix: string
  readonly log: Log
}

/** Whoever needs more wants one with a longer life. */
const PER_USER_MAX = 1_000
/** Made by tokens: whoever has stolen one must not keep its user from signing in, and making new ones, by password. */
const BY_TOKENS_MAX = 900
const TOKEN_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const script = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8')
const KEEP = script('keep-token.lua')
const REVOKE = script('revoke-token.lua')
const REVOKED_SINCE = script('revoked-since.lua')
const RESTORE = script('restore-revocations.lua')
/** Of one script, so that none lasts. */
const RESTORED_AT_ONCE = 500

export class TokenStore implements Disposable {
  readonly #redis: Redis
  readonly #prefix: string

  constructor({ redis, keyPrefix, log }: TokenStoreOptions) {
    this.#redis = connectRedis(redis, 'commands', log)
    this.#prefix = `{${keyPrefix}}:token`
    this.#redis.defineCommand('keepToken', { numberOfKeys: 3, lua: KEEP })
    this.#redis.defineCommand('revokeToken', { numberOfKeys: 4, lua: REVOKE })
    this.#redis.defineCommand('revokedSince', { numberOfKeys: 3, lua: REVOKED_SINCE })
    this.#redis.defineCommand('restoreRevocations', { numberOfKeys: 3, lua: RESTORE })
  }

  /** Until it expires. Fails with user-quota or scheduler-unavailable. */
  async keep(token: IssuedToken): Promise<void> {
    const { id, user, expiresMs, parents } = token
    const most = parents.length > 0 ? BY_TOKENS_MAX : PER_USER_MAX
    const keys = [this.#key(id), this.#ofUser(user), `${this.#prefix}:all`]
    const values = [id, JSON.stringify(token), expiresMs, most]
    if ((await this.#ask((redis) => redis.keepToken(...keys, ...values))) === 1) return
    throw new CapfleetError(
      'user-quota',
      `you have ${most} tokens that have not expired; use one of them, or give new ones a shorter lifetime`,
      { retryAfterS: 60 },
    )
  }

  /** undefined: there is none, or it has expired. Fails with scheduler-unavailable. */
  async find(id: string): Promise<TokenRecord | undefined> {
    if (!TOKEN_ID.test(id)) return undefined
    const { token, revokedMs } = await this.#ask((redis) => redis.hgetall(this.#key(id)))
    if (token === undefined) return undefined
    const issued = JSON.parse(token) as IssuedToken
    // Versions without sessions kept tokens alone, and did not say so.
    return {
      ...issued,
      kind: issued.kind ?? 'token',
      revokedMs: revokedMs === undefined ? undefined : Number(revokedMs),
    }
  }

  /** The tokens of a user, or of all, newest first. Fails with scheduler-unavailable. */
  async list(user: string | undefined): Promise<readonly TokenRecord[]> {
    const key = user === undefined ? `${this.#prefix}:all` : this.#ofUser(user)
    const ids = await this.#ask(async (redis) => redis.zrangebyscore(key, await redisTimeMs(redis), '+inf'))
    const records = await Promise.all(ids.map((id) => this.find(id)))
    return records.filter((record) => record !== undefined).sort((a, b) => b.createdMs - a.createdMs)
  }

  /** For all gateways, at their next look. Idempotent. Fails with scheduler-unavailable. */
  async revoke({ id, expiresMs }: RevokedToken): Promise<void> {
    const { revoked, byExpiry, last } = this.#revokedKeys
    const keys = [this.#key(id), revoked, byExpiry, last]
    await this.#ask((redis) => redis.revokeToken(...keys, id, expiresMs))
  }

  /**
   * What was revoked since a look that answered `look`; 0 for all that has not expired by itself. Fails with
   * scheduler-unavailable.
   */
  async revokedSince(look: number): Promise<RevocationsSeen> {
    const { revoked, byExpiry, last } = this.#revokedKeys
    const ask = (redis: Scripts) => redis.revokedSince(revoked, last, byExpiry, look)
    const [number = '0', inAll = '0', ...texts] = await this.#ask(ask)
    return {
      look: Number(number),
      inAll: Number(inAll),
      revoked: texts.map((text) => {
        const [id = '', expiresMs] = text.split(' ')
        return { id, expiresMs: Number(expiresMs) }
      }),
    }
  }

  /** Revocations that Redis has lost, for gateways that never knew them. Idempotent. Fails with scheduler-unavailable. */
  async restore(tokens: readonly RevokedToken[]): Promise<void> {
    const { revoked, byExpiry, last } = this.#revokedKeys
    for (let at = 0; at < tokens.length; at += RESTORED_AT_ONCE) {
      const part = tokens.slice(at, at + RESTORED_AT_ONCE).flatMap(({ id, expiresMs }) => [id, expiresMs])
      await this.#ask((redis) => redis.restoreRevocations(revoked, byExpiry, last, ...part))
    }
  }

  [Symbol.dispose](): void {
    this.#redis.disconnect()
  }

  #ask<Result>(ask: (redis: Scripts) => Promise<Result>): Promise<Result> {
    return askRedis(() => ask(this.#redis as Scripts), 'tokens')
  }

  #key(id: string): string {
    return `${this.#prefix}:is:${id}`
  }

  #ofUser(user: string): string {
    return `${this.#prefix}:of:${user}`
  }

  get #revokedKeys() {
    const revoked = `${this.#prefix}:revoked`
    return { revoked, byExpiry: `${revoked}:expiry`, last: `${revoked}:last` }
  }
}

/** defineCommand() cannot tell the types what it defined. */
type Scripts = Redis & {
  keepToken(...keysAndArguments: readonly (string | number)[]): Promise<number>
  revokeToken(...keysAndArguments: readonly (string | number)[]): Promise<number>
  revokedSince(...keysAndArguments: readonly (string | number)[]): Promise<readonly string[]>
  restoreRevocations(...keysAndArguments: readonly (string | number)[]): Promise<number>
}
