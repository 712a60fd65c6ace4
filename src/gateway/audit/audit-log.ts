/**
 * The audit of one process: who did what. record() resolves once the event has been written to the file, so the
 * event survives if the process is killed right afterwards. Lines from many callers are batched into one write.
 */
import { CapfleetError } from '../../shared/base/error.ts'
import type { Log } from '../../shared/base/log.ts'
import type { Metrics } from '../../shared/base/metrics.ts'
import { productVersion } from '../../shared/base/product-version.ts'
import type { SharedTime } from '../../shared/base/shared-time.ts'
import { AuditChain } from './audit-chain.ts'
import { type AuditEvent, type AuditEventName, NOBODY } from './audit-events.ts'
import { removeOldFiles } from './audit-expiry.ts'
import { formatAuditEvent } from './audit-line.ts'
import { RefusalBudget } from './refusal-budget.ts'

export interface AuditSettings {
  readonly folder: string
  /** Name of this machine, unique among those that share the folder. */
  readonly name: string
  /** Whether an action that cannot be recorded must not be done. */
  readonly required: boolean
  /** each: every line survives a power cut. second: all but the lines of the last second do. */
  readonly sync: 'each' | 'second'
  readonly fileBytes: number
  readonly keepDays: number
  /** While all files together take more bytes than this, the oldest are removed. */
  readonly keepBytes: number
  /** Bytes of lines about refused requests that one process may write per day (UTC). */
  readonly refusalBytesPerDay: number
  /** Free disk space in bytes that lines about refused requests must leave for all other lines. */
  readonly reserveBytes: number
}

export interface AuditProgram {
  readonly kind: 'gateway' | 'worker'
  readonly log: Log
  readonly metrics: Metrics
  /** The clock that dates the lines. Default: the machine's. */
  readonly now?: () => Date
}

/** The part of the audit that is needed to record events. */
export type Audit = Pick<AuditLog, 'record'>

/** Maximum number of events that wait while others are being written. */
const WAITING_MAX = 10_000
/** Maximum total length of the waiting events in UTF-16 code units. */
const WAITING_CHARS_MAX = 16 * 1_048_576
const BATCH_CHARS = 1_048_576
/** A disk that takes this long to accept a write counts as failed. */
const STALL_MS = 5_000
const SYNC_MS = 1_000
const DAY_MS = 86_400_000
const RETRY_AFTER_S = 5
/** Each file covers one day, so checking hourly is enough. */
const EXPIRE_EVERY_MS = 3_600_000

interface Waiting {
  readonly event: string
  readonly done: PromiseWithResolvers<void>
}

export class AuditLog implements AsyncDisposable {
  readonly #settings: AuditSettings
  readonly #chain: AuditChain
  readonly #log: Log
  readonly #now: () => Date
  #waiting: Waiting[] = []
  #waitingChars = 0
  /** The events that are being written. */
  #batch: readonly Waiting[] = []
  #writing: Promise<void> | undefined
  #syncing: Promise<void> | undefined
  #isSynced = true
  /** Why nothing can be written at the moment. */
  #failure: Error | undefined
  /** The current write has exceeded STALL_MS and has not returned yet. */
  #isStalled = false
  /** Events lost since the last line that was written, and since when. */
  #lost = { events: 0, since: '' }
  readonly #timer: NodeJS.Timeout
  #expiryTimer: NodeJS.Timeout | undefined
  #expiring: Promise<void> | undefined
  readonly #countLost: () => void
  readonly #refusals: RefusalBudget

  /** Fails with bad-config if the folder cannot be used. */
  static async open(settings: AuditSettings, program: AuditProgram): Promise<AuditLog> {
    const { folder, name, fileBytes, keepBytes } = settings
    const now = program.now ?? (() => new Date())
    try {
      const chain = await AuditChain.open({
        folder,
        name: `${name}.${program.kind}`,
        fileBytes,
        keepBytes,
        now,
      })
      return new AuditLog(settings, { ...program, now }, chain)
    } catch (cause) {
      throw new CapfleetError('bad-config', `audit.folder cannot be used: ${(cause as Error).message}`, {
        cause,
      })
    }
  }

  /** Use AuditLog.open. */
  constructor(settings: AuditSettings, program: Required<AuditProgram>, chain: AuditChain) {
    this.#settings = settings
    this.#chain = chain
    this.#log = program.log
    this.#now = program.now
    const { metrics } = program
    const lost = metrics.counter('audit_lost_total', 'Events that could not be written to the audit')
    this.#countLost = () => lost.inc()
    const skipped = metrics.counter(
      'audit_refusals_skipped_total',
      'Rejected requests without a line in the audit, because of audit.refusalBytesPerDay or audit.reserveBytes',
    )
    this.#refusals = new RefusalBudget(settings, { now: program.now, countSkipped: () => skipped.inc() })
    metrics.gauge('audit_writable', 'Whether the audit can be written', [], (gauge) =>
      gauge.set(this.#failure === undefined ? 1 : 0),
    )
    this.#timer = setInterval(() => void this.#syncSoon(), SYNC_MS).unref()
    this.#own('audit.opened', { program: program.kind, version: productVersion(), pid: process.pid })
    const { cutBytes, fileName: file } = chain
    if (cutBytes > 0) this.#own('audit.recovered', { file, cutBytes })
  }

  /** The folder with the audit files of all processes that share it. */
  get folder(): string {
    return this.#settings.folder
  }

  /**
   * Resolves once the event is in the file. Fails with audit-unavailable if it cannot be written, unless the audit
   * is not required.
   */
  async record(event: AuditEvent): Promise<void> {
    try {
      await this.#append(event)
    } catch (cause) {
      if (this.#settings.required) throw unavailable(cause)
    }
  }

  /**
   * Records a refused request within the limits for refusals: a caller without any rights must not be able to fill
   * the disk that all other events need. Never fails.
   */
  async recordRefusal(event: AuditEvent): Promise<void> {
    if (!(await this.#refusals.take(Buffer.byteLength(formatAuditEvent(event))))) return
    await this.#append(event).catch(() => undefined)
  }

  /**
   * Starts removing files older than `keepDays`, as long as this host's clock agrees with the shared time: once
   * before this resolves, then hourly. Nothing is removed before this call, because a program that is starting has
   * only its own clock.
   */
  async expireBy(clock: SharedTime): Promise<void> {
    this.#expiryTimer ??= setInterval(() => void this.#expireOnce(clock), EXPIRE_EVERY_MS).unref()
    await this.#expireOnce(clock)
  }

  /** Flushes what is waiting. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    clearInterval(this.#expiryTimer)
    await this.#expiring
    this.#own('audit.closed')
    await this.#writing
    await this.#syncing
    await this.#sync().catch((err: Error) => this.#log.error('audit.sync-failed', { err }))
    await this.#chain[Symbol.asyncDispose]()
  }

  /** Ensures that only one removal runs at a time. */
  #expireOnce(clock: SharedTime): Promise<void> {
    if (clock.distrust !== undefined) return Promise.resolve()
    const { folder, keepDays } = this.#settings
    this.#expiring ??= removeOldFiles(folder, clock.nowMs() - keepDays * DAY_MS)
      .catch((err: Error) => this.#log.warn('audit.not-expired', { err }))
      .finally(() => {
        this.#expiring = undefined
      })
    return this.#expiring
  }

  /** Records an event of the program itself. A failure does not block anything. */
  #own(event: AuditEventName, details: Readonly<Record<string, unknown>> = {}): void {
    this.#append({ ...NOBODY, event, details }).catch(() => undefined)
  }

  #append(event: AuditEvent): Promise<void> {
    const done = Promise.withResolvers<void>()
    const entry = { event: formatAuditEvent(event), done }
    const isFull = this.#waiting.length >= WAITING_MAX || this.#waitingChars >= WAITING_CHARS_MAX
    if (this.#isStalled || isFull) {
      this.#lose([entry], this.#failure ?? new Error('too many events are waiting to be written'))
      return done.promise
    }
    this.#waiting.push(entry)
    this.#waitingChars += entry.event.length
    this.#writing ??= this.#write()
    return done.promise
  }

  async #write(): Promise<void> {
    // Events recorded in the same turn go into the same write.
    await undefined
    while (this.#waiting.length > 0) {
      this.#batch = this.#takeBatch()
      const stall = setTimeout(() => this.#stall(), STALL_MS)
      try {
        await this.#put(this.#batch.map(({ event }) => event))
        this.#isStalled = false
        this.#tellWritable()
        for (const { done } of this.#batch) done.resolve()
      } catch (error) {
        this.#isStalled = false
        this.#lose(this.#batch, error as Error)
      } finally {
        clearTimeout(stall)
        this.#batch = []
      }
    }
    // Must be synchronous: a caller notified in this turn may record again before it ends.
    this.#writing = undefined
  }

  #takeBatch(): readonly Waiting[] {
    let chars = 0
    let count = 0
    while (count < this.#waiting.length && chars < BATCH_CHARS) {
      chars += this.#waiting[count]?.event.length ?? 0
      count += 1
    }
    this.#waitingChars -= chars
    return this.#waiting.splice(0, count)
  }

  async #put(events: readonly string[]): Promise<void> {
    const lost = this.#lost
    const gap = lost.events === 0 ? [] : [formatAuditEvent({ ...NOBODY, event: 'audit.lost', details: lost })]
    await this.#chain.write([...gap, ...events])
    if (gap.length > 0) this.#lost = { events: this.#lost.events - lost.events, since: this.#lost.since }
    this.#isSynced = false
    if (this.#settings.sync === 'each') await this.#sync()
  }

  async #sync(): Promise<void> {
    if (this.#isSynced) return
    this.#isSynced = true
    await this.#chain.sync()
  }

  async #syncSoon(): Promise<void> {
    this.#syncing ??= this.#sync()
      .catch((error: Error) => this.#fail(error))
      .finally(() => {
        this.#syncing = undefined
      })
    await this.#syncing
  }

  /** Fails all waiting callers when the disk does not respond. */
  #stall(): void {
    this.#isStalled = true
    const late = [...this.#batch, ...this.#waiting.splice(0)]
    this.#batch = []
    this.#waitingChars = 0
    this.#lose(late, new Error(`the disk has not accepted a line within ${STALL_MS / 1_000} s`))
  }

  #lose(entries: readonly Waiting[], failure: Error): void {
    this.#fail(failure)
    const since = this.#lost.events === 0 ? this.#now().toISOString() : this.#lost.since
    this.#lost = { events: this.#lost.events + entries.length, since }
    for (const { done } of entries) {
      this.#countLost()
      done.reject(failure)
    }
  }

  #fail(failure: Error): void {
    if (this.#failure === undefined) this.#log.error('audit.unavailable', { err: failure })
    this.#failure = failure
  }

  #tellWritable(): void {
    if (this.#failure !== undefined) this.#log.info('audit.writable')
    this.#failure = undefined
  }
}

function unavailable(cause: unknown): CapfleetError {
  return new CapfleetError(
    'audit-unavailable',
    'the audit cannot be written now, and requests that it must record are rejected; tell the operator of this program',
    { cause, retryAfterS: RETRY_AFTER_S },
  )
}
