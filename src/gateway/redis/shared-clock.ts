/**
 * The time shared by gateways and workers: that of Redis (TIME), extrapolated with this machine's CLOCK_MONOTONIC. It
 * decides what is due and what has expired, so that a host with a wrong clock neither starts scheduled runs nor
 * removes anything too early.
 *
 * Irreversible actions (scheduled runs, removal of exports and audit files) are suspended while `distrust` gives a
 * reason:
 *
 *   - "host-differs": the clock of this host is more than a minute from the shared time,
 *   - "redis-stepped": the clock of Redis has moved by more than a minute against CLOCK_MONOTONIC. The shared time
 *     continues unaffected until Redis is back, or adopts the clock of Redis after an hour in which this host's clock
 *     agrees with it,
 *   - "unconfirmed": at the start, TIME is earlier than the last time that any program has seen, or more than 15 minutes
 *     later, and this machine has been rebooted since it last saw it. It ends when TIME is back, or after an hour as
 *     above,
 *   - "redis-silent": Redis has not answered for a minute.
 *
 * The last time seen, and for each boot of a machine the offset of CLOCK_MONOTONIC from the shared time, are stored in
 * Redis. So a step between two starts is detected even if Redis runs on the same host and has the same wrong clock.
 */
import type { Redis } from 'ioredis'
import { readBootId } from '../../shared/base/boot-id.ts'
import type { Log } from '../../shared/base/log.ts'
import type { Metrics } from '../../shared/base/metrics.ts'
import type { ClockDistrust, SharedTime } from '../../shared/base/shared-time.ts'
import { askRedis } from './ask-redis.ts'
import { connectRedis, type RedisTarget } from './redis-connection.ts'
import { redisTimeMs } from './redis-time.ts'

export interface SharedClockOptions {
  readonly redis: RedisTarget
  readonly keyPrefix: string
  readonly log: Log
  readonly metrics: Metrics
  /** Default: the clocks of this machine. */
  readonly clocks?: HostClocks
  /** Default: TIME. */
  readonly readTimeMs?: (redis: Redis) => Promise<number>
  /** Default: as reported by the kernel. */
  readonly bootId?: string
}

export interface HostClocks {
  /** Epoch milliseconds of this host. */
  wallMs(): number
  /** Milliseconds of a clock that never steps and continues across restarts of this program. */
  monotonicMs(): number
}

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
const TOLERANCE_MS = MINUTE_MS
const DOWN_MAX_MS = 15 * MINUTE_MS
const FOLLOWED_AFTER_MS = 60 * MINUTE_MS
const SILENT_AFTER_MS = MINUTE_MS
const ASK_EVERY_MS = 5 * SECOND_MS
/** Number of boots that are stored; a boot that is dropped is stored again soon if a program still runs under it. */
const BOOTS_MAX = 1_000
const NANOS_PER_MS = 1e6

const MACHINE_CLOCKS: HostClocks = {
  wallMs: () => Date.now(),
  monotonicMs: () => Number(process.hrtime.bigint()) / NANOS_PER_MS,
}

/** Redis' clock while it deviates from the shared time. */
interface Departure {
  readonly why: 'redis-stepped' | 'unconfirmed'
  /** How far TIME is ahead of CLOCK_MONOTONIC. */
  readonly offsetMs: number
  /** CLOCK_MONOTONIC at the first sample there. */
  readonly sinceMs: number
  /** Between these offsets Redis counts as back. */
  readonly back: readonly [number, number]
}

export class SharedClock implements SharedTime, AsyncDisposable {
  readonly #redis: Redis
  readonly #key: string
  readonly #log: Log
  readonly #clocks: HostClocks
  readonly #readTimeMs: (redis: Redis) => Promise<number>
  readonly #bootId: string
  /** How far the shared time is ahead of CLOCK_MONOTONIC. */
  #offsetMs = 0
  #departure: Departure | undefined
  /** CLOCK_MONOTONIC at the last answer. */
  #heardMs = Number.NEGATIVE_INFINITY
  #toldDistrust: ClockDistrust | undefined
  #timer: NodeJS.Timeout | undefined
  #asking: Promise<void> | undefined

  private constructor(options: SharedClockOptions, bootId: string) {
    const { redis, keyPrefix, log, metrics, clocks = MACHINE_CLOCKS, readTimeMs = redisTimeMs } = options
    this.#redis = connectRedis(redis, 'commands', log)
    this.#key = `{${keyPrefix}}:clock`
    this.#log = log
    this.#clocks = clocks
    this.#readTimeMs = readTimeMs
    this.#bootId = bootId
    metrics.gauge(
      'shared_clock_trusted',
      'Whether this host trusts the time of Redis; 0: no scheduled run is started, and nothing is removed because of its age',
      [],
      (gauge) => gauge.set(this.distrust === undefined ? 1 : 0),
    )
    metrics.gauge(
      'shared_clock_difference_seconds',
      'How far the clock of this host is ahead of the time of Redis',
      [],
      (gauge) => gauge.set(this.differenceMs / SECOND_MS),
    )
  }

  /** Knows the time when it resolves, and keeps polling until disposed. Fails with scheduler-unavailable. */
  static async start(options: SharedClockOptions): Promise<SharedClock> {
    const clock = new SharedClock(options, options.bootId ?? (await readBootId()))
    try {
      await clock.#begin()
    } catch (error) {
      clock.#redis.disconnect()
      throw error
    }
    clock.#timer = setInterval(() => void clock.#askOnce(), ASK_EVERY_MS).unref()
    return clock
  }

  nowMs(): number {
    return Math.floor(this.#clocks.monotonicMs() + this.#offsetMs)
  }

  /** How far the clock of this host is ahead. */
  get differenceMs(): number {
    return this.#clocks.wallMs() - this.nowMs()
  }

  get distrust(): ClockDistrust | undefined {
    const distrust = this.#findDistrust()
    if (distrust !== this.#toldDistrust) this.#tell(distrust)
    return distrust
  }

  /** Polls Redis now. Fails with scheduler-unavailable, keeping the known time. */
  async ask(): Promise<void> {
    this.#take(await this.#sample())
    if (this.distrust === undefined) await this.#keep()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.#asking
    this.#redis.disconnect()
  }

  async #begin(): Promise<void> {
    const { monotonicMs, offsetMs } = await this.#sample()
    const kept = await askRedis(() => this.#redis.hgetall(this.#key), 'times')
    await this.#forgetBoots(Object.keys(kept))
    const known = this.#bootId === '' ? undefined : kept[this.#bootId]
    this.#offsetMs = known === undefined ? offsetMs : Number(known)
    const seenMs = kept.seen === undefined ? undefined : Number(kept.seen)
    const aheadMs = seenMs === undefined ? 0 : monotonicMs + offsetMs - seenMs
    const isPlausible = aheadMs >= -TOLERANCE_MS && aheadMs <= DOWN_MAX_MS
    if (known === undefined && seenMs !== undefined && !isPlausible) {
      const seenOffsetMs = seenMs - monotonicMs
      const back = [seenOffsetMs - TOLERANCE_MS, seenOffsetMs + DOWN_MAX_MS] as const
      this.#departure = { why: 'unconfirmed', offsetMs, sinceMs: monotonicMs, back }
    }
    this.#take({ monotonicMs, offsetMs })
    if (this.distrust === undefined) await this.#keep()
  }

  async #sample(): Promise<Sample> {
    const askedMs = this.#clocks.monotonicMs()
    const timeMs = await askRedis(() => this.#readTimeMs(this.#redis), 'times')
    const monotonicMs = (askedMs + this.#clocks.monotonicMs()) / 2
    return { monotonicMs, offsetMs: timeMs - monotonicMs }
  }

  #take({ monotonicMs, offsetMs }: Sample): void {
    this.#heardMs = monotonicMs
    const here = [this.#offsetMs - TOLERANCE_MS, this.#offsetMs + TOLERANCE_MS] as const
    const { why, back, ...since } = this.#departure ?? { why: 'redis-stepped', back: here }
    const isBack = back[0] <= offsetMs && offsetMs <= back[1]
    // If this host's clock disagrees, one of the two is wrong.
    const isSteady =
      'sinceMs' in since &&
      isNear(offsetMs, since.offsetMs) &&
      isNear(this.#clocks.wallMs(), monotonicMs + offsetMs)
    if (isBack || (isSteady && monotonicMs - since.sinceMs >= FOLLOWED_AFTER_MS)) {
      this.#offsetMs = offsetMs
      this.#departure = undefined
      return
    }
    if (!isSteady) this.#departure = { why, back, offsetMs, sinceMs: monotonicMs }
    // Nothing better is known.
    if (why === 'unconfirmed') this.#offsetMs = offsetMs
  }

  #findDistrust(): ClockDistrust | undefined {
    if (this.#clocks.monotonicMs() - this.#heardMs > SILENT_AFTER_MS) return 'redis-silent'
    if (this.#departure !== undefined) return this.#departure.why
    return Math.abs(this.differenceMs) > TOLERANCE_MS ? 'host-differs' : undefined
  }

  #tell(distrust: ClockDistrust | undefined): void {
    this.#toldDistrust = distrust
    const differenceMs = Math.round(this.differenceMs)
    if (distrust === undefined) this.#log.info('clock.trusted', { differenceMs })
    else this.#log.warn('clock.distrusted', { reason: distrust, differenceMs })
  }

  async #keep(): Promise<void> {
    const offset = this.#bootId === '' ? {} : { [this.#bootId]: String(this.#offsetMs) }
    await askRedis(() => this.#redis.hset(this.#key, { seen: String(this.nowMs()), ...offset }), 'times')
  }

  async #forgetBoots(fields: readonly string[]): Promise<void> {
    const others = fields.filter((field) => field !== 'seen' && field !== this.#bootId)
    if (others.length >= BOOTS_MAX) await askRedis(() => this.#redis.hdel(this.#key, ...others), 'times')
  }

  /** One poll at a time. While Redis is unreachable the last known time is extrapolated. */
  #askOnce(): Promise<void> {
    this.#asking ??= this.ask()
      .catch(() => void this.distrust)
      .finally(() => {
        this.#asking = undefined
      })
    return this.#asking
  }
}

interface Sample {
  /** The monotonic clock at the midpoint of the request. */
  readonly monotonicMs: number
  readonly offsetMs: number
}

function isNear(aMs: number, bMs: number): boolean {
  return Math.abs(aMs - bMs) <= TOLERANCE_MS
}
