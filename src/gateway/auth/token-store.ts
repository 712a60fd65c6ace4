/** The issued tokens in Redis: their properties and whether they were revoked, but never the token itself. */
import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'
import type { Bounds } from '../../shared/base/caller.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import type { Log } from '../../shared/base/log.ts'
import type { Scope } from '../../shared/base/scopes.ts'
import { askRedis } from '../redis/ask-redis.ts'
import { connectRedis, type RedisTarget } from '../redis/redis-connection.ts'
import { redisTimeMs } from '../redis/redis-time.ts'

/** An issued token. */
export interface IssuedToken {
  /**
   * session: no client holds the token with this id itself. The session's cookies, which are renewed repeatedly,
   * contain the id.
   */
  readonly kind: 'token' | 'session'
  readonly id: string
  readonly user: string
  readonly scopes: readonly Scope[]
  readonly bounds: Bounds
  /** Ids of the tokens that it was derived from, oldest first. */
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
  /** Number of all revocations in Redis whose tokens have not expired. */
  readonly inAll: number
  readonly revoked: readonly RevokedToken[]
}

export interface TokenStoreOptions {
  readonly redis: RedisTarget
  readonly keyPrefix: string
  readonly log: Log
}

/** Anyone who needs more should use tokens with longer lifetimes. */
const PER_USER_MAX = 1_000
/**
 * Limit for tokens issued by tokens: a thief of one must not keep its user from signing in and issuing new ones by
 * password.
 */
const BY_TOKENS_MAX = 900
const TOKEN_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const script = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8')
const KEEP = script('keep-token.lua')
const REVOKE = script('revoke-token.lua')
const REVOKED_SINCE = script('revoked-since.lua')
const RESTORE = script('restore-revocations.lua')
/** Maximum number per script call, so that no call takes long. */
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

  /** Stores the token until it expires. Fails with user-quota or scheduler-unavailable. */
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

  /** Returns undefined if the token does not exist or has expired. Fails with scheduler-unavailable. */
  async find(id: string): Promise<TokenRecord | undefined> {
    if (!TOKEN_ID.test(id)) return undefined
    const { token, revokedMs } = await this.#ask((redis) => redis.hgetall(this.#key(id)))
    if (token === undefined) return undefined
    const issued = JSON.parse(token) as IssuedToken
    // Versions without sessions stored only tokens, without a kind.
    return {
      ...issued,
      kind: issued.kind ?? 'token',
      revokedMs: revokedMs === undefined ? undefined : Number(revokedMs),
    }
  }

  /** The tokens of one user or of all, newest first. Fails with scheduler-unavailable. */
  async list(user: string | undefined): Promise<readonly TokenRecord[]> {
    const key = user === undefined ? `${this.#prefix}:all` : this.#ofUser(user)
    const ids = await this.#ask(async (redis) => redis.zrangebyscore(key, await redisTimeMs(redis), '+inf'))
    const records = await Promise.all(ids.map((id) => this.find(id)))
    return records.filter((record) => record !== undefined).sort((a, b) => b.createdMs - a.createdMs)
  }

  /** Revokes the token; all gateways see it at their next poll. Idempotent. Fails with scheduler-unavailable. */
  async revoke({ id, expiresMs }: RevokedToken): Promise<void> {
    const { revoked, byExpiry, last } = this.#revokedKeys
    const keys = [this.#key(id), revoked, byExpiry, last]
    await this.#ask((redis) => redis.revokeToken(...keys, id, expiresMs))
  }

  /**
   * What was revoked since the poll that returned `look`; 0 returns all that have not expired. Fails with
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

  /**
   * Restores revocations that Redis has lost, for gateways that never saw them. Idempotent. Fails with
   * scheduler-unavailable.
   */
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

/** defineCommand() cannot add the types of the commands it defines. */
type Scripts = Redis & {
  keepToken(...keysAndArguments: readonly (string | number)[]): Promise<number>
  revokeToken(...keysAndArguments: readonly (string | number)[]): Promise<number>
  revokedSince(...keysAndArguments: readonly (string | number)[]): Promise<readonly string[]>
  restoreRevocations(...keysAndArguments: readonly (string | number)[]): Promise<number>
}
