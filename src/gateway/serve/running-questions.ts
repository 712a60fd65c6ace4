/**
 * Counts and searches that read packets, while they run: what each is for, in Redis, so that the queue of every gateway
 * shows it and decides by it who may cancel it; and their cancellation as a whole, although each of their devices has a
 * lease of its own.
 */
import type { Redis } from 'ioredis'
import type { Log } from '../../shared/base/log.ts'
import { type KeptPlan, keepShortPlan } from '../fleet/plan/kept-plan.ts'
import type { BoundedQuery } from '../fleet/plan/within-bounds.ts'
import { asUnavailable } from '../lease/lease-failure.ts'
import type { LeaseScheduler } from '../lease/lease-scheduler.ts'
import { connectRedis, type RedisTarget } from '../redis/redis-connection.ts'

export interface RunningQuestion {
  readonly user: string
  readonly beganMs: number
  readonly plan: KeptPlan
}

export interface QuestionAsked {
  /** Its leases have this id, or `{id}.0`, `{id}.1` and so on, in the order of the devices. */
  readonly id: string
  readonly user: string
  readonly query: BoundedQuery
  readonly devices: readonly string[]
}

/** How long the record of a gateway that died is kept; others are removed when they end. */
const KEPT_S = 86_400
const READ_AT_ONCE = 50
const LEASE_OF_QUESTION = /^([0-9a-f-]{36})\.\d{1,9}$/

/** The id of the request that a lease belongs to: a count or a search of several devices has one lease for each. */
export function requestOfLease(leaseId: string): string {
  return LEASE_OF_QUESTION.exec(leaseId)?.[1] ?? leaseId
}

/** The ids that the leases of a question may have. */
export function leasesOfQuestion(id: string, { plan: { devices } }: RunningQuestion): readonly string[] {
  return [id, ...devices.map((_, index) => `${id}.${index}`)]
}

export class RunningQuestions implements Disposable {
  readonly #redis: Redis
  readonly #keyPrefix: string
  readonly #leases: LeaseScheduler

  constructor(options: {
    readonly redis: RedisTarget
    readonly keyPrefix: string
    readonly leases: LeaseScheduler
    readonly log: Log
  }) {
    this.#redis = connectRedis(options.redis, 'commands', options.log)
    this.#keyPrefix = options.keyPrefix
    this.#leases = options.leases
  }

  /** `cancelled` aborts when the question is cancelled in the queue. Dispose it when the question has ended. */
  async begin(asked: QuestionAsked): Promise<AsyncDisposable & { readonly cancelled: AbortSignal }> {
    const { id, user, query, devices } = asked
    const plan = keepShortPlan({ query, steps: devices.map((device) => ({ device })) })
    const question: RunningQuestion = { user, beganMs: Date.now(), plan }
    const group = this.#leases.group(id)
    // Without Redis no stream is granted, which the answer says for each device.
    await this.#redis.set(this.#key(id), JSON.stringify(question), 'EX', KEPT_S).catch(() => undefined)
    return {
      cancelled: group.cancelled,
      [Symbol.asyncDispose]: async () => {
        group[Symbol.dispose]()
        await this.#redis.del(this.#key(id)).catch(() => undefined)
      },
    }
  }

  /** Those of these requests that are running questions, by id. Fails with scheduler-unavailable. */
  async findAll(ids: readonly string[]): Promise<ReadonlyMap<string, RunningQuestion>> {
    const found = new Map<string, RunningQuestion>()
    for (let from = 0; from < ids.length; from += READ_AT_ONCE) {
      const some = ids.slice(from, from + READ_AT_ONCE)
      const texts = await this.#redis.mget(some.map((id) => this.#key(id))).catch(asUnavailable)
      for (const [index, id] of some.entries()) {
        const text = texts[index]
        if (typeof text === 'string') found.set(id, JSON.parse(text) as RunningQuestion)
      }
    }
    return found
  }

  [Symbol.dispose](): void {
    this.#redis.disconnect()
  }

  #key(id: string): string {
    return `{${this.#keyPrefix}}:question:${id}`
  }
}
