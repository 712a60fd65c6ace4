/**
 * Distributes the streams of all devices among the requests of all gateway replicas: never more than
 * `streamsPerDevice` on a device, fair across classes and users, all devices of a request at once, and nothing held
 * while waiting. The authoritative state is in Redis (see lease-rules.lua for data and rules); this class is one
 * replica's client of it.
 */
import { randomUUID } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { CapfleetError } from '../../shared/base/error.ts'
import type { Log } from '../../shared/base/log.ts'
import { connectRedis, type RedisTarget } from '../redis/redis-connection.ts'
import { HeldLease, type LeaseActions } from './held-lease.ts'
import type { DeviceUse, Lease, LeaseRequest, QueueRow, RequeueOptions } from './lease.ts'
import { LeaseEntry } from './lease-entry.ts'
import {
  asUnavailable,
  cancelledBy,
  queueTimeout,
  schedulerUnavailable,
  shuttingDown,
} from './lease-failure.ts'
import { fenceEntries } from './lease-fence.ts'
import { LeaseHeartbeat } from './lease-heartbeat.ts'
import { LeaseHousekeeper, type ReadersOf } from './lease-housekeeper.ts'
import { readLeaseInbox } from './lease-inbox.ts'
import { LeaseQueue } from './lease-queue.ts'
import { type Enqueued, LeaseScripts } from './lease-scripts.ts'
import { LEASE_TIMINGS, type LeaseTimings } from './lease-timings.ts'

export interface LeaseSchedulerOptions {
  readonly redis: RedisTarget
  readonly keyPrefix: string
  /** An appliance serves four downloads at once. */
  readonly streamsPerDevice: number
  readonly log: Log
  /** Default: no device reports its readers. */
  readonly readersOf?: ReadersOf
  /**
   * No other gateway uses this Redis, which ends together with this one; workers may use it. So everything the
   * previous gateway had there ended with it, recovery after a restart of Redis is over once this replica has reported
   * (unless there was a worker), and nobody else can use its streams, however long Redis is unreachable.
   */
  readonly sole?: boolean
  readonly timings?: LeaseTimings
  /** Unique name of this replica. Default: a random one, or that of the previous gateway if it is the sole one. */
  readonly replica?: string
}

/** The name by which a restarted gateway with a private Redis finds its leases. */
export const SOLE_REPLICA = 'gateway'

/** "cancel id user": what cancel.lua sends. */
const CANCELLATION = /^cancel (\S+) (.*)$/s

export class LeaseScheduler {
  readonly #log: Log
  readonly #timings: LeaseTimings
  readonly #readersOf: ReadersOf
  readonly #sole: boolean
  readonly #redis: Redis
  readonly #scripts: LeaseScripts
  readonly #queue: LeaseQueue
  readonly #heartbeat: LeaseHeartbeat
  readonly #housekeeper: LeaseHousekeeper
  readonly #inbox: Promise<void>
  readonly #actions: LeaseActions = {
    opened: (entry) => {
      if (entry.state !== 'held') return
      entry.opened = true
      this.#heartbeat.opened(entry.request.id)
    },
    reopening: (entry) => {
      if (entry.state !== 'held') return
      entry.opened = false
      this.#heartbeat.reopening(entry.request.id)
    },
    requeue: (entry, busy, options) => this.#requeue(entry, busy, options),
    giveBack: (entry) => this.#giveBack(entry),
  }
  readonly #onTimeout = (entry: LeaseEntry) => void this.#giveUp(entry)
  readonly #entries = new Map<string, LeaseEntry>()
  /** Requests with several leases, by id. */
  readonly #groups = new Map<string, AbortController>()
  readonly #closing = new AbortController()
  #ticking: NodeJS.Timeout | undefined
  #draining = false
  /** The number of the last attempt. */
  #attempt = 0
  #lost = 0
  readonly #cancelled = { waiting: 0, streaming: 0 }

  private constructor(options: LeaseSchedulerOptions) {
    const { log, keyPrefix, sole = false } = options
    const timings = options.timings ?? LEASE_TIMINGS
    const replica = options.replica ?? (sole ? SOLE_REPLICA : randomUUID())
    const redis = connectRedis(options.redis, 'commands', log)
    this.#log = log
    this.#timings = timings
    this.#readersOf = options.readersOf ?? (() => Promise.resolve(undefined))
    this.#sole = sole
    this.#redis = redis
    const scripts = new LeaseScripts({ ...options, redis, replica, timings })
    this.#scripts = scripts
    this.#queue = new LeaseQueue({ redis, scripts, keyPrefix, replica })
    const entries = this.#entries
    const nextAttempt = () => ++this.#attempt
    this.#heartbeat = new LeaseHeartbeat({ scripts, timings, log, entries, sole, nextAttempt })
    this.#housekeeper = new LeaseHousekeeper({
      scripts,
      queue: this.#queue,
      log,
      entries,
      readersOf: this.#readersOf,
      release: (id) => scripts.release(id, this.#attempt),
    })
    const inbox = connectRedis(options.redis, 'blocking', log)
    const onMessage = (message: string) => this.#receive(message)
    this.#inbox = readLeaseInbox(inbox, `{${keyPrefix}}:in:${replica}`, onMessage, log, this.#closing.signal)
  }

  /** Joins the scheduler. Fails with scheduler-unavailable if Redis does not answer. */
  static async start(options: LeaseSchedulerOptions): Promise<LeaseScheduler> {
    const scheduler = new LeaseScheduler(options)
    try {
      if (options.sole) await scheduler.#leave()
      await scheduler.#heartbeat.beat()
    } catch (cause) {
      await scheduler.close()
      throw schedulerUnavailable(cause)
    }
    // Redis may have been restarted, and grants nothing until everything that is running has been reported again.
    scheduler.#redis.on('ready', () => {
      scheduler.#heartbeat.reassertNext()
      scheduler.#tick()
    })
    scheduler.#ticking = setInterval(() => scheduler.#tick(), scheduler.#timings.heartbeatMs)
    return scheduler
  }

  /**
   * Waits for a stream on every device of the request. Rejects with queue-timeout (its member `position` is the place
   * in the queue), scheduler-unavailable, draining, or the signal's reason.
   */
  async acquire(request: LeaseRequest): Promise<Lease> {
    request.signal.throwIfAborted()
    this.#refuseWhileDraining(request)
    const { id, devices } = request
    // The scripts would take it for a release, and never answer.
    if (devices.length === 0) throw new Error(`the request ${id} wants a lease on no device`)
    if (this.#entries.has(id)) throw new Error(`the request ${id} has a lease already`)
    const entry = new LeaseEntry(request, ++this.#attempt)
    this.#entries.set(id, entry)
    try {
      await this.#enqueue(entry)
      await this.#waitFor(entry, request)
      return new HeldLease(entry, this.#actions)
    } catch (error) {
      // Not awaited: the release is sent now, and it never fails.
      void this.#giveBack(entry)
      throw error
    }
  }

  /** Streams in use and waiters of each device, in the given order. */
  use(devices: readonly string[]): Promise<readonly DeviceUse[]> {
    return this.#queue.use(devices)
  }

  /** Holders and waiters across all replicas, oldest first; at most 1,000. */
  queue(): Promise<readonly QueueRow[]> {
    return this.#queue.list()
  }

  /** Those of these requests that hold or wait, of any replica, in the given order. */
  places(ids: readonly string[]): Promise<readonly QueueRow[]> {
    return this.#queue.places(ids)
  }

  /**
   * Asks the replica that has the request to end it, because the user `by` wants that: a wait is rejected, and a lease
   * is lost, with download-cancelled. Returns the state that the request has; for a suspect, nothing can be done. `parts`
   * are the leases of a request that has several (see group()). Fails with scheduler-unavailable.
   */
  cancel(id: string, by: string, parts: readonly string[] = [id]): Promise<QueueRow['state'] | undefined> {
    return this.#scripts.cancel(id, by, parts).catch(asUnavailable)
  }

  /**
   * For a request whose leases have the ids `{id}.0`, `{id}.1` and so on. Until it is disposed, a cancellation of `id`
   * cancels all of them, and aborts the signal, so that no more are requested.
   */
  group(id: string): Disposable & { readonly cancelled: AbortSignal } {
    const controller = new AbortController()
    this.#groups.set(id, controller)
    return { cancelled: controller.signal, [Symbol.dispose]: () => void this.#groups.delete(id) }
  }

  /** Number of requests of this replica that were cancelled, since the start. */
  get cancelled(): { readonly waiting: number; readonly streaming: number } {
    return this.#cancelled
  }

  /** Whether Redis acknowledged a heartbeat recently. */
  get reachable(): boolean {
    return this.#heartbeat.silentMs < this.#timings.unavailableMs
  }

  /** Round-trip time of the last acknowledged heartbeat. */
  get roundTripMs(): number {
    return this.#heartbeat.roundTripMs
  }

  /** Number of leases that were cut because Redis was unreachable, since the start. */
  get lost(): number {
    return this.#lost
  }

  /** What this replica has now; `streams` counts one for each device of a held lease. */
  get own(): { readonly held: number; readonly waiting: number; readonly streams: number } {
    const own = { held: 0, waiting: 0, streams: 0 }
    for (const { state, request } of this.#entries.values()) {
      if (state === 'waiting') own.waiting += 1
      if (state !== 'held') continue
      own.held += 1
      own.streams += request.devices.length
    }
    return own
  }

  /**
   * From now on leases are only granted to downloads that have begun; all other waiters get draining. Held leases
   * stay.
   */
  drain(): void {
    this.#draining = true
    this.#failWaiters(shuttingDown(), ({ hasBegun }) => hasBegun !== true)
  }

  /** Releases everything and leaves. */
  async close(): Promise<void> {
    this.#draining = true
    this.#failWaiters(shuttingDown())
    clearInterval(this.#ticking)
    this.#closing.abort()
    for (const entry of this.#entries.values()) entry.lost.abort(shuttingDown())
    await this.#inbox
    await this.#heartbeat.beat().catch(() => undefined)
    await this.#housekeeper.run()
    try {
      await this.#leave()
    } catch (error) {
      this.#log.warn('lease.leave-failed', { message: (error as Error).message })
    }
    this.#redis.disconnect()
  }

  async #leave(): Promise<void> {
    while ((await this.#scripts.leave()) > 0);
  }

  async #enqueue(entry: LeaseEntry): Promise<void> {
    const { request, attempt } = entry
    const { id, devices, class: requestClass, user } = request
    const ask = { id, devices, class: requestClass, user, attempt }
    let answer: Enqueued
    try {
      answer = await this.#scripts.enqueue(ask)
      if (answer.state === 'lapsed') {
        await this.#heartbeat.beat()
        answer = await this.#scripts.enqueue(ask)
      }
    } catch (cause) {
      throw schedulerUnavailable(cause)
    }
    const { state, position, tag, seq, enqueuedMs } = answer
    if (state === 'taken') throw new Error(`another gateway has a request ${id}`)
    if (state === 'lapsed') throw schedulerUnavailable(new Error('this replica has no lease of its own'))
    entry.ticket = { tag, seq, enqueuedMs }
    if (state === 'g') this.#heartbeat.accept(entry)
    else request.onPosition?.({ position, etaMs: undefined })
  }

  /** A wait that something ended while its grant was on its way has ended: the caller then gives the grant back. */
  async #waitFor(entry: LeaseEntry, options: RequeueOptions): Promise<void> {
    await entry.woken(options, this.#onTimeout)
    options.signal.throwIfAborted()
  }

  /** Ends the wait; also retrieves the position in the queue. */
  async #giveUp(entry: LeaseEntry): Promise<void> {
    const { request } = entry
    if (entry.state !== 'waiting') return
    entry.state = 'leaving'
    try {
      const [rows] = await Promise.all([
        this.#scripts.places([request.id]),
        this.#scripts.release(request.id, entry.attempt),
      ])
      entry.wake(queueTimeout(request, rows[0]))
    } catch (cause) {
      entry.wake(schedulerUnavailable(cause))
    }
  }

  async #requeue(entry: LeaseEntry, busy: string, options: RequeueOptions): Promise<void> {
    const { id } = entry.request
    try {
      options.signal.throwIfAborted()
      entry.lost.signal.throwIfAborted()
      this.#refuseWhileDraining(entry.request)
      this.#heartbeat.forget(id)
      const attempt = ++this.#attempt
      entry.rewait(attempt)
      const { state, position } = await this.#scripts
        .requeue(id, busy, attempt, options.busyMs)
        .catch(asUnavailable)
      if (state === 'g') this.#heartbeat.receive(`${attempt} ${id}`)
      else if (state === '') await this.#heartbeat.reassertNow().catch(asUnavailable)
      else entry.request.onPosition?.({ position, etaMs: undefined })
      await this.#waitFor(entry, options)
    } catch (error) {
      void this.#giveBack(entry)
      throw error
    }
  }

  /** Releases an entry, once. The housekeeping repeats a release that Redis cannot accept now. */
  async #giveBack(entry: LeaseEntry): Promise<void> {
    const { id } = entry.request
    if (this.#entries.get(id) !== entry) return
    this.#entries.delete(id)
    this.#heartbeat.forget(id)
    try {
      await this.#scripts.release(id, entry.attempt)
    } catch (error) {
      this.#housekeeper.reconcileNext()
      this.#log.warn('lease.release-delayed', { id, message: (error as Error).message })
    }
  }

  #receive(message: string): void {
    const [, id, by] = CANCELLATION.exec(message) ?? []
    if (id === undefined || by === undefined) this.#heartbeat.receive(message)
    else this.#cancel(id, by)
  }

  #cancel(id: string, by: string): void {
    const group = this.#groups.get(id)
    const ids = group === undefined ? [id] : [...this.#entries.keys()].filter((one) => isPartOf(one, id))
    for (const one of ids) this.#cancelOwn(one, by)
    group?.abort(cancelledBy(by))
  }

  /** A request that has ended meanwhile, or is ending, is left alone. */
  #cancelOwn(id: string, by: string): void {
    const entry = this.#entries.get(id)
    if (entry === undefined || entry.state === 'leaving' || entry.lost.signal.aborted) return
    const state = entry.state === 'waiting' ? 'waiting' : 'streaming'
    this.#log.info('lease.cancelled', { id, user: entry.request.user, by, state })
    this.#cancelled[state] += 1
    if (state === 'waiting') entry.wake(cancelledBy(by))
    else entry.lost.abort(cancelledBy(by))
  }

  #tick(): void {
    const { unavailableMs, fenceMs } = this.#timings
    if (this.#heartbeat.silentMs > unavailableMs) this.#failWaiters(schedulerUnavailable(undefined))
    if (this.#heartbeat.silentMs > fenceMs && !this.#sole)
      void fenceEntries(this.#entries.values(), this.#readersOf, {
        log: this.#log,
        onCut: () => {
          this.#lost += 1
        },
      })
    this.#heartbeat.beat().then(
      () => this.#housekeeper.run(),
      (error: Error) => this.#log.warn('lease.heartbeat-failed', { message: error.message }),
    )
  }

  #refuseWhileDraining({ hasBegun }: LeaseRequest): void {
    if (this.#closing.signal.aborted || (this.#draining && hasBegun !== true)) throw shuttingDown()
  }

  #failWaiters(failure: CapfleetError, isMeant: (request: LeaseRequest) => boolean = () => true): void {
    for (const entry of this.#entries.values())
      if (entry.state === 'waiting' && isMeant(entry.request)) entry.wake(failure)
  }
}

function isPartOf(leaseId: string, id: string): boolean {
  return leaseId === id || leaseId.startsWith(`${id}.`)
}
