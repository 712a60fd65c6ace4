/** Faults in a chaos world: each event begins, lasts, and ends; several run at the same time. */
import { setTimeout as delay } from 'node:timers/promises'
import type { SeededRandom } from '../seeded-random.ts'
import type { ChaosWorld } from './chaos-world.ts'

export type ChaosKind =
  | 'gateway-kill'
  | 'gateway-stop'
  | 'redis-partition'
  | 'device-partition'
  | 'redis-kill'
  | 'redis-empty'

/** A past or current event; `gateway` is undefined if it affected all. */
export interface ChaosRecord {
  readonly kind: ChaosKind
  readonly gateway: number | undefined
  readonly beganMs: number
  endedMs: number
}

/** Per about a thousand events. */
const WEIGHTS: readonly (readonly [ChaosKind, number])[] = [
  ['gateway-kill', 60],
  ['gateway-stop', 290],
  ['redis-partition', 320],
  ['device-partition', 318],
  ['redis-kill', 6],
  ['redis-empty', 3],
]
/** Most outages are short and many; some are longer than a lease (5 s). */
const LONG_ONE_IN = 25
const SHORT_MS = [20, 700] as const
const LONG_MS = [5_000, 20_000] as const
/** After each loss of Redis nothing is granted for 5 s; streams should be running when the next loss comes. */
const REDIS_REST_MS = 12_000

export class ChaosEvents {
  readonly records: ChaosRecord[] = []
  readonly #world: ChaosWorld
  readonly #random: SeededRandom
  /** What is disturbed, and at which gateway: one event at a time for each. */
  readonly #busy = new Set<string>()
  readonly #running = new Set<Promise<void>>()
  readonly #failures: unknown[] = []
  readonly #over = new AbortController()

  constructor(world: ChaosWorld, random: SeededRandom) {
    this.#world = world
    this.#random = random
  }

  /** Starts `count` events, on average one each `everyMs`; then ends all that are still running. */
  async run(count: number, everyMs: number): Promise<void> {
    while (this.records.length < count) {
      this.#begin(this.#kind())
      await delay(this.#random.integer(0, 2 * everyMs))
      if (this.#failures.length > 0) break
    }
    this.#over.abort()
    await Promise.all(this.#running)
    if (this.#failures.length > 0) throw this.#failures[0]
  }

  /** Whether an event of these kinds affected the gateway (or all) between two times. */
  hit(gateway: number, kinds: readonly ChaosKind[], fromMs: number, toMs: number): boolean {
    return this.records.some(
      (record) =>
        kinds.includes(record.kind) &&
        (record.gateway === undefined || record.gateway === gateway) &&
        record.beganMs <= toMs &&
        record.endedMs >= fromMs,
    )
  }

  #kind(): ChaosKind {
    const total = WEIGHTS.reduce((sum, [, weight]) => sum + weight, 0)
    let at = this.#random.integer(0, total - 1)
    for (const [kind, weight] of WEIGHTS) {
      if (at < weight) return kind
      at -= weight
    }
    throw new Error('no such weight')
  }

  #begin(kind: ChaosKind): void {
    const gateway = this.#random.integer(0, this.#world.gateways.length - 1)
    const [leastMs, mostMs] = this.#random.integer(1, LONG_ONE_IN) === 1 ? LONG_MS : SHORT_MS
    const lastsMs = this.#random.integer(leastMs, mostMs)
    const ofRedis = kind === 'redis-kill' || kind === 'redis-empty'
    // A stopped process cannot be restarted, and a killed one cannot be stopped; networks are independent of that.
    const place = ofRedis ? 'redis' : kind.startsWith('gateway') ? `process${gateway}` : `${kind}${gateway}`
    if (this.#busy.has(place)) return
    this.#busy.add(place)
    const record: ChaosRecord = {
      kind,
      gateway: ofRedis ? undefined : gateway,
      beganMs: Date.now(),
      endedMs: Infinity,
    }
    this.records.push(record)
    const running = this.#perform(kind, gateway, lastsMs)
      .catch((error) => this.#failures.push(error))
      .then(() => {
        record.endedMs = Date.now()
        this.#busy.delete(place)
        this.#running.delete(running)
      })
    this.#running.add(running)
  }

  async #perform(kind: ChaosKind, gateway: number, lastsMs: number): Promise<void> {
    const { fleet, gateways } = this.#world
    const process = gateways[gateway]
    if (process === undefined) throw new Error(`no gateway ${gateway}`)
    if (kind === 'redis-kill' || kind === 'redis-empty') {
      await this.#world.restartRedis({ empty: kind === 'redis-empty' })
      return this.#last(REDIS_REST_MS)
    }
    if (kind === 'gateway-kill') {
      await process.signal('SIGKILL')
      await this.#last(lastsMs)
      return process.start()
    }
    if (kind === 'gateway-stop') {
      await process.signal('SIGSTOP')
      await this.#last(lastsMs)
      await process.signal('SIGCONT')
      return
    }
    const part = kind === 'redis-partition' ? 'redis' : 'devices'
    await fleet.cut(part, gateway)
    await this.#last(lastsMs)
    await fleet.mend(part, gateway)
  }

  async #last(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#over.signal }).catch(() => undefined)
  }
}
