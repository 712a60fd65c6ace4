/**
 * Keeps this replica's state and what Redis knows about it consistent: heartbeats, acknowledgements, and reporting
 * everything again after a lapse or after Redis was restarted or lost its data. Work on behalf of all replicas is in
 * lease-housekeeper.ts.
 */
import type { Log } from '../../shared/base/log.ts'
import { type LeaseEntry, ownedRequest } from './lease-entry.ts'
import type { LeaseScripts, OwnedRequest } from './lease-scripts.ts'
import type { LeaseTimings } from './lease-timings.ts'

export interface HeartbeatOptions {
  readonly scripts: LeaseScripts
  readonly timings: LeaseTimings
  readonly log: Log
  /** All entries of the replica, by id. */
  readonly entries: ReadonlyMap<string, LeaseEntry>
  /** Whether no other gateway can have anything in this Redis. */
  readonly sole: boolean
  /** Returns a number larger than every earlier attempt. */
  readonly nextAttempt: () => number
}

/** Limits the running time of one script. */
const REQUESTS_A_SCRIPT = 200
const ACKNOWLEDGEMENTS_A_BEAT = 1_000

export class LeaseHeartbeat {
  readonly #options: HeartbeatOptions
  /** Grants ("attempt id") to be acknowledged by the next heartbeats. */
  readonly #received = new Set<string>()
  /**
   * Requests whose streams have all begun, or one of whose streams is being reopened; reported by the next heartbeats.
   */
  readonly #streams = new Map<string, 'opened' | 'reopening'>()
  #mustReassert = false
  #recoverUntil: string | undefined
  #acknowledgedMs = performance.now()
  #roundTripMs = 0
  #beating: Promise<void> | undefined

  constructor(options: HeartbeatOptions) {
    this.#options = options
  }

  /** Time since the last heartbeat was sent that Redis acknowledged. */
  get silentMs(): number {
    return performance.now() - this.#acknowledgedMs
  }

  /** Round-trip time of the last acknowledged heartbeat. */
  get roundTripMs(): number {
    return this.#roundTripMs
  }

  /** One heartbeat at a time, so that they do not pile up if Redis is slow. */
  beat(): Promise<void> {
    this.#beating ??= this.#sendHeartbeat().finally(() => {
      this.#beating = undefined
    })
    return this.#beating
  }

  /** Makes the next heartbeat report everything to Redis. */
  reassertNext(): void {
    this.#mustReassert = true
  }

  /** Reports everything to Redis at once, because it may have less, or more, than is true. */
  async reassertNow(): Promise<void> {
    this.#mustReassert = true
    await this.#beatAgain()
  }

  /**
   * Processes a grant from Redis ("attempt id"). Duplicates, and grants of requests that no longer exist, are
   * harmless.
   */
  receive(message: string): void {
    const space = message.indexOf(' ')
    const entry = this.#options.entries.get(message.slice(space + 1))
    if (entry?.state !== 'waiting' || entry.attempt !== Number(message.slice(0, space))) {
      this.#received.add(message)
    } else if (this.accept(entry)) {
      this.#received.add(message)
    }
  }

  /**
   * Makes a granted entry held. Returns false after a pause in which the replica may have been considered dead and the
   * grant freed: Redis is then asked who owns it, and the answer is processed here again.
   */
  accept(entry: LeaseEntry): boolean {
    if (this.silentMs >= this.#options.timings.leaseTtlMs) {
      this.reassertNow().catch((error: Error) =>
        this.#options.log.warn('lease.heartbeat-failed', { message: error.message }),
      )
      return false
    }
    if (entry.state !== 'waiting') return true
    entry.state = 'held'
    entry.wake()
    return true
  }

  /** Reports with the next heartbeat that all streams under a held entry have begun. */
  opened(id: string): void {
    this.#streams.set(id, 'opened')
  }

  /** Reports at once that a stream under a held entry is being reopened; until then Redis may rely on it. */
  reopening(id: string): void {
    this.#streams.set(id, 'reopening')
    this.#beatAgain().catch((error: Error) =>
      this.#options.log.warn('lease.heartbeat-failed', { message: error.message }),
    )
  }

  forget(id: string): void {
    this.#streams.delete(id)
  }

  /** Sends a heartbeat after the current one, which may have been sent before the latest news. */
  async #beatAgain(): Promise<void> {
    await this.#beating?.catch(() => undefined)
    await this.beat()
  }

  async #sendHeartbeat(): Promise<void> {
    const sentMs = performance.now()
    const received = firstOf(this.#received, ACKNOWLEDGEMENTS_A_BEAT)
    const streams = firstOf(this.#streams, ACKNOWLEDGEMENTS_A_BEAT)
    const idsOf = (wanted: string) => streams.filter(([, news]) => news === wanted).map(([id]) => id)
    const { state, recoverUntil, granted } = await this.#options.scripts.heartbeat({
      received,
      opened: idsOf('opened'),
      reopening: idsOf('reopening'),
    })
    this.#roundTripMs = performance.now() - sentMs
    for (const message of received) this.#received.delete(message)
    for (const [id, told] of streams) if (this.#streams.get(id) === told) this.#streams.delete(id)
    this.#acknowledgedMs = sentMs
    if (state === 'lapsed') this.#refuseEarlierGrants()
    // Redis may have been restarted, or does not know this replica yet.
    if (state === 'lapsed' || recoverUntil !== this.#recoverUntil) this.#mustReassert = true
    this.#recoverUntil = recoverUntil
    if (this.#mustReassert) await this.#reassert()
    for (const message of granted) this.receive(message)
  }

  /** A grant from before a lapse may arrive late, when its streams have been given to others. */
  #refuseEarlierGrants(): void {
    for (const entry of this.#options.entries.values()) {
      // An enqueue without an answer so far reaches Redis after the heartbeat.
      if (entry.state === 'waiting' && entry.ticket !== undefined) entry.attempt = this.#options.nextAttempt()
    }
  }

  async #reassert(): Promise<void> {
    const { scripts, sole, entries } = this.#options
    this.#mustReassert = false
    const owned = [...entries.values()].flatMap((entry) => ownedRequest(entry) ?? [])
    try {
      for (let from = 0; from === 0 || from < owned.length; from += REQUESTS_A_SCRIPT) {
        const some = owned.slice(from, from + REQUESTS_A_SCRIPT)
        const ends = sole && from + REQUESTS_A_SCRIPT >= owned.length
        const states = await scripts.reassert(
          some.filter((one) => this.#isCurrent(one)),
          { ends },
        )
        for (const { id, attempt, state } of states) if (state === 'g') this.receive(`${attempt} ${id}`)
      }
    } catch (error) {
      this.#mustReassert = true
      throw error
    }
  }

  /** Whether the entry is still as it was to be reported: it may have been released between two scripts. */
  #isCurrent({ id, attempt, kind }: OwnedRequest): boolean {
    const entry = this.#options.entries.get(id)
    const now = entry && ownedRequest(entry)
    return now !== undefined && now.attempt === attempt && (now.kind === 'waiting') === (kind === 'waiting')
  }
}

function firstOf<Item>(items: Iterable<Item>, most: number): Item[] {
  return [...items].slice(0, most)
}
