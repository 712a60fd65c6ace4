/** Tickets: each allows one download through its link alone, once, for a short time. */
import { hash, randomBytes, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'
import { type Bounds, type Caller, markOf } from '../../shared/base/caller.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import type { SharedTime } from '../../shared/base/shared-time.ts'
import { askRedis } from '../redis/ask-redis.ts'
import { connectRedis } from '../redis/redis-connection.ts'
import type { Grants } from './grants.ts'
import type { TokenStoreOptions } from './token-store.ts'

/** What Redis stores under a hash of the ticket and the address it is for. */
interface KeptTicket {
  readonly id: string
  readonly user: string
  readonly bounds: Bounds
  readonly chain: readonly string[]
  readonly expiresMs: number
  /** Earlier versions did not store it. */
  readonly madeMs?: number
  readonly mark?: string | undefined
}

export interface NewTicket {
  readonly id: string
  readonly ticket: string
  readonly expiresMs: number
}

const TICKET_BYTES = 32
const TICKET = /^[A-Za-z0-9_-]{43}$/
const PER_USER_MAX = 1_000
const KEEP = readFileSync(new URL('keep-ticket.lua', import.meta.url), 'utf8')

export interface TicketsOptions extends TokenStoreOptions {
  readonly clock: SharedTime
}

export class Tickets implements Disposable {
  readonly #redis: Redis
  readonly #prefix: string
  readonly #grants: Grants
  readonly #clock: SharedTime

  constructor({ redis, keyPrefix, log, clock }: TicketsOptions, grants: Grants) {
    this.#clock = clock
    this.#redis = connectRedis(redis, 'commands', log)
    this.#prefix = `{${keyPrefix}}:ticket`
    this.#grants = grants
    this.#redis.defineCommand('keepTicket', { numberOfKeys: 2, lua: KEEP })
  }

  /**
   * Issues a ticket of the caller for `target`, a path with a query. Fails with user-quota or
   * scheduler-unavailable.
   */
  async issue({ name, bounds, credential }: Caller, target: string, lifetimeS: number): Promise<NewTicket> {
    const [id, ticket] = [randomUUID(), randomBytes(TICKET_BYTES).toString('base64url')]
    const ofToken = 'chain' in credential ? credential : undefined
    const madeMs = this.#clock.nowMs()
    const expiresMs = Math.min(madeMs + lifetimeS * 1_000, ofToken?.expiresMs ?? Number.POSITIVE_INFINITY)
    const chain = ofToken?.chain ?? []
    const kept: KeptTicket = { id, user: name, bounds, chain, expiresMs, madeMs, mark: markOf(credential) }
    const keys = [this.#key(ticket, target), `${this.#prefix}:of:${name}`]
    const values = [JSON.stringify(kept), id, expiresMs, PER_USER_MAX]
    const isKept = await this.#ask((redis) => redis.keepTicket(...keys, ...values))
    if (isKept === 1) return { id, ticket, expiresMs }
    throw new CapfleetError(
      'user-quota',
      `you have ${PER_USER_MAX} tickets that have not expired; wait, or give them a shorter lifetime`,
      { retryAfterS: 60 },
    )
  }

  /**
   * The caller for a ticket, with at most its giver's present rights. `isUse`: the ticket is used up. Fails with
   * bad-ticket, unauthenticated or scheduler-unavailable.
   */
  async redeem(ticket: string, target: string, isUse: boolean): Promise<Caller> {
    if (!TICKET.test(ticket)) throw badTicket()
    const key = this.#key(ticket, target)
    const text = await this.#ask((redis) => (isUse ? redis.getdel(key) : redis.get(key)))
    if (text === null) throw badTicket()
    const { id, madeMs = 0, ...given } = JSON.parse(text) as KeptTicket
    const grant = { ...given, madeMs, scopes: ['capture:download'] as const }
    return this.#grants.callerOf(grant, this.#grants.giverOf(grant), { kind: 'ticket', id })
  }

  [Symbol.dispose](): void {
    this.#redis.disconnect()
  }

  #ask<Result>(ask: (redis: Scripts) => Promise<Result>): Promise<Result> {
    return askRedis(() => ask(this.#redis as Scripts), 'tickets')
  }

  /** With another address the ticket is not found, and so is not used up. */
  #key(ticket: string, target: string): string {
    return `${this.#prefix}:is:${hash('sha256', `${ticket} ${target}`)}`
  }
}

/** defineCommand() cannot add the type of the command it defines. */
type Scripts = Redis & {
  keepTicket(...keysAndArguments: readonly (string | number)[]): Promise<number>
}

function badTicket(): CapfleetError {
  return new CapfleetError(
    'bad-ticket',
    'the link has been used, has expired or was altered; ask the person who sent it for another one',
  )
}
