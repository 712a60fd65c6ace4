/**
 * Shares the streams of all devices among the requests of all gateway replicas: never more than
 * `streamsPerDevice` on a device, first come first served, all devices of a request at once and
 * nothing held while waiting. The truth is in Redis (lease-rules.lua has the data and the rules);
 * this class is one replica's side of it.
 */
import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { CapfleetError } from '../base/error.ts'
import type { Log } from '../base/log.ts'
import type { DeviceUse, Lease, LeaseRequest } from './lease.ts'
import { asUnavailable, queueTimeout, schedulerUnavailable, shuttingDown } from './lease-failure.ts'
import { readLeaseInbox } from './lease-inbox.ts'
import { LeaseScripts, type OwnedRequest, type QueueRow } from './lease-scripts.ts'
import { LEASE_TIMINGS, type LeaseTimings } from './lease-timings.ts'
import { connectRedis, type RedisTarget } from './redis-connection.ts'

export interface LeaseSchedulerOptions {
  readonly redis: RedisTarget
  readonly keyPrefix: string
  /** API section 8: an appliance serves four downloads at once. */
  readonly streamsPerDevice: number
  readonly log: Log
  readonly timings?: LeaseTimings
  /** Unique name of this replica; default: a random one. */
  readonly replica?: string
}

/** A request that has been sent to Redis and not yet given back. */
interface Entry {
  readonly request: LeaseRequest
  readonly enqueuedMs: number
  readonly lost: AbortController
  /** `leaving`: its wait is over and its release on the way; a grant that comes now is nobody's. */
  state: 'waiting' | 'held' | 'leaving'
  /** Settles acquire(): no argument = granted. */
  wake: (failure?: CapfleetError) => void
}

export class LeaseScheduler {
  readonly #options: LeaseSchedulerOptions
  readonly #timings: LeaseTimings
  readonly #redis: Redis
  readonly #scripts: LeaseScripts
  readonly #entries = new Map<string, Entry>()
  readonly #closing = new AbortController()
  /** Grants received since the last heartbeat, which acknowledges them. */
  #received = new Set<string>()
  #mustReassert = false
  #acknowledgedMs = performance.now()
  #heartbeat: NodeJS.Timeout | undefined
  #beating: Promise<void> | undefined
  #inbox: Promise<void> | undefined
  #draining = false

  private constructor(options: LeaseSchedulerOptions) {
    this.#options = options
    this.#timings = options.timings ?? LEASE_TIMINGS
    this.#redis = connectRedis(options.redis, 'commands', options.log)
    const replica = options.replica ?? randomUUID()
    this.#scripts = new LeaseScripts({ ...options, redis: this.#redis, replica })
    this.#redis.on('ready', () => {
      this.#mustReassert = true
    })
    const inbox = connectRedis(options.redis, 'blocking', options.log)
    this.#inbox = readLeaseInbox(
      inbox,
      `{${options.keyPrefix}}:in:${replica}`,
      (id) => this.#onGrant(id),
      options.log,
      this.#closing.signal,
    )
  }

  /** Joins the scheduler. Fails with scheduler-unavailable when Redis does not answer. */
  static async start(options: LeaseSchedulerOptions): Promise<LeaseScheduler> {
    const scheduler = new LeaseScheduler(options)
    try {
      await scheduler.#beat()
    } catch (cause) {
      await scheduler.close()
      throw schedulerUnavailable(cause)
    }
    scheduler.#heartbeat = setInterval(() => scheduler.#tick(), scheduler.#timings.heartbeatMs)
    return scheduler
  }

  /**
   * Waits for a stream on every device of the request. Rejects with queue-timeout (its member
   * `position` tells the place in line), scheduler-unavailable, draining, or the signal's reason.
   */
  async acquire(request: LeaseRequest): Promise<Lease> {
    request.signal.throwIfAborted()
    if (this.#draining) throw shuttingDown()
    const id = randomUUID()
    const entry: Entry = {
      request,
      enqueuedMs: performance.now(),
      lost: new AbortController(),
      state: 'waiting',
      wake: () => undefined,
    }
    const granted = new Promise<void>((resolve, reject) => {
      entry.wake = (failure) => (failure === undefined ? resolve() : reject(failure))
    })
    // Whoever rejects first, enqueue or the wait, is the one that the caller hears.
    granted.catch(() => undefined)
    this.#entries.set(id, entry)
    try {
      await this.#enqueue(id, entry)
      await this.#waitFor(id, entry, granted)
      return this.#leaseOf(id, entry)
    } catch (error) {
      // Nobody needs to wait for this one: it is sent now, and it never fails.
      void this.#giveBack(id)
      throw error
    }
  }

  /** Streams in use and waiters of each device, in the order given. */
  async use(devices: readonly string[]): Promise<readonly DeviceUse[]> {
    if (devices.length === 0) return []
    const prefix = `{${this.#options.keyPrefix}}`
    try {
      const [used, ...waiting] = await Promise.all([
        this.#redis.hmget(`${prefix}:u`, ...devices),
        ...devices.map((device) => this.#redis.zcard(`${prefix}:q:${device}`)),
      ])
      return devices.map((_, i) => ({ used: Number(used[i] ?? 0), waiting: waiting[i] ?? 0 }))
    } catch (cause) {
      throw schedulerUnavailable(cause)
    }
  }

  /** Who holds and who waits, over all replicas, oldest first. */
  async queue(): Promise<readonly QueueRow[]> {
    try {
      return await this.#scripts.queueSnapshot()
    } catch (cause) {
      throw schedulerUnavailable(cause)
    }
  }

  /** Whether Redis acknowledged a heartbeat lately. */
  get reachable(): boolean {
    return performance.now() - this.#acknowledgedMs < this.#timings.unavailableMs
  }

  /** No lease is granted any more; whoever waits gets draining. Leases that are held stay. */
  drain(): void {
    this.#draining = true
    this.#failWaiters(shuttingDown())
  }

  /** Gives everything back and leaves. */
  async close(): Promise<void> {
    this.drain()
    clearInterval(this.#heartbeat)
    for (const entry of this.#entries.values()) entry.lost.abort(shuttingDown())
    this.#closing.abort()
    await this.#inbox
    await this.#beating?.catch(() => undefined)
    await this.#scripts
      .leave()
      .catch((error: Error) => this.#options.log.warn('lease.leave-failed', { message: error.message }))
    this.#redis.disconnect()
  }

  async #enqueue(id: string, entry: Entry): Promise<void> {
    const { devices, class: requestClass, user } = entry.request
    const send = () => this.#scripts.enqueue(id, devices.join(','), requestClass, user)
    let answer = await send().catch(asUnavailable)
    if (answer.state === 'lapsed') {
      await this.#beat().catch(asUnavailable)
      answer = await send().catch(asUnavailable)
    }
    if (answer.state === 'lapsed')
      throw schedulerUnavailable(new Error('this replica has no lease of its own'))
    if (answer.state === 'g') this.#onGrant(id)
  }

  async #waitFor(id: string, entry: Entry, granted: Promise<void>): Promise<void> {
    const { signal, waitMs } = entry.request
    if (entry.state === 'held') return signal.throwIfAborted()
    const onAbort = () => entry.wake(signal.reason)
    signal.addEventListener('abort', onAbort)
    const leftMs = Math.max(0, waitMs - (performance.now() - entry.enqueuedMs))
    const timer = setTimeout(() => void this.#giveUp(id, entry), leftMs)
    try {
      if (signal.aborted) onAbort()
      await granted
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** The wait is over; asks for the place in line while leaving it. */
  async #giveUp(id: string, entry: Entry): Promise<void> {
    if (entry.state === 'held') return
    entry.state = 'leaving'
    try {
      const { position } = await this.#scripts.release(id)
      entry.wake(queueTimeout(entry.request, position))
    } catch (cause) {
      entry.wake(schedulerUnavailable(cause))
    }
  }

  #leaseOf(id: string, entry: Entry): Lease {
    return {
      id,
      devices: entry.request.devices,
      waitedMs: performance.now() - entry.enqueuedMs,
      lost: entry.lost.signal,
      [Symbol.asyncDispose]: () => this.#giveBack(id),
    }
  }

  /** Idempotent. A release that Redis cannot take now is made up for by the next reassert. */
  async #giveBack(id: string): Promise<void> {
    if (!this.#entries.delete(id)) return
    try {
      await this.#scripts.release(id)
    } catch (error) {
      this.#mustReassert = true
      this.#options.log.warn('lease.release-delayed', { id, message: (error as Error).message })
    }
  }

  /** Also called for grants that arrive twice, or for a request that has gone: both are harmless. */
  #onGrant(id: string): void {
    this.#received.add(id)
    const entry = this.#entries.get(id)
    if (entry?.state !== 'waiting') return
    entry.state = 'held'
    entry.wake()
  }

  #tick(): void {
    const silentMs = performance.now() - this.#acknowledgedMs
    if (silentMs > this.#timings.unavailableMs) this.#failWaiters(schedulerUnavailable(undefined))
    if (silentMs > this.#timings.fenceMs) this.#fence()
    this.#beat().catch((error: Error) =>
      this.#options.log.warn('lease.heartbeat-failed', { message: error.message }),
    )
  }

  /** One heartbeat at a time: a slow Redis must not collect a heap of them. */
  #beat(): Promise<void> {
    this.#beating ??= this.#sendHeartbeat().finally(() => {
      this.#beating = undefined
    })
    return this.#beating
  }

  async #sendHeartbeat(): Promise<void> {
    const sentMs = performance.now()
    const received = [...this.#received]
    const { leaseTtlMs, suspectMs } = this.#timings
    const { state, granted } = await this.#scripts.heartbeat(leaseTtlMs, suspectMs, received)
    for (const id of received) this.#received.delete(id)
    if (state === 'lapsed') this.#mustReassert = true
    if (this.#mustReassert) await this.#reassert()
    for (const id of granted) this.#onGrant(id)
    this.#acknowledgedMs = sentMs
  }

  async #reassert(): Promise<void> {
    this.#mustReassert = false
    const owned: OwnedRequest[] = []
    for (const [id, { request, state }] of this.#entries) {
      const { devices, class: requestClass, user } = request
      if (state !== 'leaving') owned.push([id, devices.join(','), requestClass, user, state])
    }
    try {
      for (const id of await this.#scripts.reassert(owned)) {
        this.#entries.get(id)?.wake(schedulerUnavailable(new Error('the place in the queue was lost')))
      }
    } catch (error) {
      this.#mustReassert = true
      throw error
    }
  }

  #failWaiters(failure: CapfleetError): void {
    for (const entry of this.#entries.values()) if (entry.state === 'waiting') entry.wake(failure)
  }

  #fence(): void {
    for (const [id, entry] of this.#entries) {
      if (entry.lost.signal.aborted) continue
      this.#options.log.error('lease.fenced', { id, devices: entry.request.devices })
      entry.lost.abort(schedulerUnavailable(new Error('Redis has been away for too long')))
    }
  }
}
