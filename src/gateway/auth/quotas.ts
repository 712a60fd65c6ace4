/**
 * What callers use of their quotas (Bounds), across all replicas: concurrent downloads, and bytes per day. A
 * download takes its place before it waits for a stream, reports the bytes it has sent every second, and is cut
 * off once the day's bytes are used up. The quota can be exceeded by at most what is sent within that second.
 */
import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'
import type { Quota } from '../../shared/base/caller.ts'
import { CapfleetError } from '../../shared/base/error.ts'
import type { Log } from '../../shared/base/log.ts'
import { outsideOfRequests } from '../../shared/base/request-context.ts'
import { connectRedis, type RedisTarget } from '../redis/redis-connection.ts'

export interface QuotasOptions {
  readonly redis: RedisTarget
  readonly keyPrefix: string
  readonly log: Log
}

/** A download that counts against quotas. Dispose it when it ends. */
export interface QuotaUse extends Disposable {
  /** Aborts with byte-quota as the reason when the day's bytes are used up. */
  readonly spent: AbortSignal
  sent(bytes: number): void
}

const SCRIPT = readFileSync(new URL('use-quotas.lua', import.meta.url), 'utf8')
const TELL_MS = 1_000
/** The downloads of a gateway that died keep their places for this long. */
const PLACE_MS = 15_000

interface QuotaRedis extends Redis {
  useQuotas(key: string, ...rest: (string | number)[]): Promise<['ok' | 'streams' | 'bytes', string?]>
}

export class Quotas implements Disposable {
  readonly #redis: QuotaRedis
  readonly #key: string
  readonly #log: Log
  readonly #running = new Set<RunningUse>()
  #timer: NodeJS.Timeout | undefined

  constructor({ redis, keyPrefix, log }: QuotasOptions) {
    this.#redis = connectRedis(redis, 'commands', log) as QuotaRedis
    this.#redis.defineCommand('useQuotas', { numberOfKeys: 1, lua: SCRIPT })
    this.#key = `{${keyPrefix}:quota}:`
    this.#log = log
  }

  /** Takes a place for the download. Fails with stream-quota, byte-quota or scheduler-unavailable. */
  async begin(id: string, quotas: readonly Quota[]): Promise<QuotaUse> {
    const use = new RunningUse(id, quotas, (ended) => this.#end(ended))
    if (quotas.length === 0) return use
    const refusal = await this.#ask(use, { keptMs: PLACE_MS, bytes: '' })
    if (refusal !== undefined) {
      // With byte-quota, the script has already taken a place, so give it back.
      if (refusal.code === 'byte-quota') this.#tell(use, { keptMs: 0, bytes: 0 })
      throw refusal
    }
    this.#running.add(use)
    this.#timer ??= outsideOfRequests(() => setInterval(() => this.#tellAll(), TELL_MS)).unref()
    return use
  }

  /** Counts bytes that were delivered in another way. Fails with byte-quota if the day's bytes are used up. */
  async add(id: string, quotas: readonly Quota[], bytes: number): Promise<void> {
    if (quotas.length === 0) return
    const refusal = await this.#ask({ id, quotas }, { keptMs: 0, bytes })
    if (refusal !== undefined) throw refusal
  }

  /** REQUIRES: all uses have ended. */
  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.#redis.disconnect()
  }

  #tellAll(): void {
    for (const use of this.#running) this.#tell(use, { keptMs: PLACE_MS, bytes: use.take() })
  }

  #end(use: RunningUse): void {
    if (!this.#running.delete(use)) return
    this.#tell(use, { keptMs: 0, bytes: use.take() })
    if (this.#running.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /**
   * Reports usage. While Redis is unreachable streams continue; what they sent is reported once it is back, unless
   * they have ended by then.
   */
  #tell(use: RunningUse, told: Told & { readonly bytes: number }): void {
    this.#ask(use, told).then(
      (refusal) => refusal?.code === 'byte-quota' && use.spend(refusal),
      (err: unknown) => {
        use.putBack(told.bytes)
        this.#log.warn('quota.not-told', { id: use.id, bytes: told.bytes, err })
      },
    )
  }

  async #ask(
    { id, quotas }: Pick<RunningUse, 'id' | 'quotas'>,
    { keptMs, bytes }: Told,
  ): Promise<CapfleetError | undefined> {
    const triples = quotas.flatMap(({ holder, streamsMax = '', bytesPerDay = '' }) => [
      holder,
      streamsMax,
      bytesPerDay,
    ])
    try {
      const [state, holder] = await this.#redis.useQuotas(this.#key, id, keptMs, bytes, ...triples)
      return state === 'ok'
        ? undefined
        : refusalOf(
            state,
            quotas.find((quota) => quota.holder === holder),
          )
    } catch (cause) {
      throw new CapfleetError(
        'scheduler-unavailable',
        'the quotas are in Redis, which cannot be reached now; ask again',
        { retryAfterS: 5, cause },
      )
    }
  }
}

interface Told {
  /** How long the place is kept from now, in ms. */
  readonly keptMs: number
  /** '' means that the download starts, and takes a place only if one is free. */
  readonly bytes: number | ''
}

class RunningUse implements QuotaUse {
  readonly id: string
  readonly quotas: readonly Quota[]
  readonly #spent = new AbortController()
  readonly #onEnd: (use: RunningUse) => void
  /** Sent but not reported yet. */
  #bytes = 0

  constructor(id: string, quotas: readonly Quota[], onEnd: (use: RunningUse) => void) {
    this.id = id
    this.quotas = quotas
    this.#onEnd = onEnd
  }

  get spent(): AbortSignal {
    return this.#spent.signal
  }

  sent(bytes: number): void {
    this.#bytes += bytes
  }

  /** Returns the bytes to report now. */
  take(): number {
    const bytes = this.#bytes
    this.#bytes = 0
    return bytes
  }

  putBack(bytes: number): void {
    this.#bytes += bytes
  }

  spend(reason: CapfleetError): void {
    this.#spent.abort(reason)
  }

  [Symbol.dispose](): void {
    this.#onEnd(this)
  }
}

const SECOND_MS = 1_000
const DAY_MS = 86_400_000

function refusalOf(state: 'streams' | 'bytes', quota: Quota | undefined): CapfleetError {
  if (state === 'streams') {
    return new CapfleetError(
      'stream-quota',
      `you may run ${quota?.streamsMax} downloads at the same time; wait until one has ended`,
      { retryAfterS: 5 },
    )
  }
  const leftMs = DAY_MS - (Date.now() % DAY_MS)
  return new CapfleetError(
    'byte-quota',
    `you have used all of your ${quota?.bytesPerDay} bytes for today (UTC); ask again after midnight UTC`,
    { retryAfterS: Math.ceil(leftMs / SECOND_MS) },
  )
}
