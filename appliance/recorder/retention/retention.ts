import type { LogEntry } from '../../../native/segment-entry.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'
import { FairLimit } from '../../../src/shared/base/fair-limit.ts'
import type { Log } from '../../../src/shared/base/log.ts'
import type { RetentionSettings } from '../../appliance-config.ts'
import type { EventSink } from '../../events/event-log.ts'
import type { RetentionReport } from '../../link/capture-report.ts'
import type { ImportRoom } from '../../link/import-request.ts'
import type { StorePaths } from '../../store/store-paths.ts'
import { createdNs, type StoredCapture } from '../../store/stored-capture.ts'
import type { RecorderClock } from '../clock/recorder-clock.ts'
import type { HeldCapture } from '../writer/held-capture.ts'
import { RESERVE } from '../writer/store-reserve.ts'
import type { StoreWriter } from '../writer/store-writer.ts'
import { HeldRemovals } from './held-removals.ts'
import type { Removal } from './removal-queue.ts'
import { freedBy, type RemovalReason, SegmentRemover } from './segment-remover.ts'
import {
  isLacking,
  type Lack,
  minus,
  missingBytes,
  type Need,
  NOTHING,
  plus,
  StoreRoom,
} from './store-room.ts'

export interface RetentionOptions {
  readonly writer: StoreWriter
  readonly paths: StorePaths
  readonly settings: RetentionSettings
  readonly events: EventSink
  /** Decides what is older than `retention.maxAgeMs`. */
  readonly ages: Pick<RecorderClock, 'isAged'>
  /** The write rate of the running capture, measured over the last seconds. */
  readonly bytesPerSecond: () => number
  readonly log: Log
}

/** A fast capture fills a gigabyte within about a second. */
const INTERVAL_MS = 1_000
/** Segments of one capture that are removed from its record in one change. */
const BATCH_MAX = 64
const NEVER = new AbortController().signal

/** Space reserved for one import, until disposed. */
export interface GivenRoom extends ImportRoom, Disposable {
  /** Aborts with store-full if the import has to give way. */
  readonly signal: AbortSignal
}

/**
 * Keeps the store within its limits: removes the oldest finished segments, checking every second and after each
 * finished segment. A failed check is repeated a second later, and reported by one event and by report(); a capture
 * whose segments cannot be removed does not hold up the others. Owned by the recorder; only one may work on a store.
 */
export class Retention implements AsyncDisposable {
  readonly #options: RetentionOptions
  readonly #removals: HeldRemovals
  readonly #room: StoreRoom
  readonly #remover: SegmentRemover
  readonly #turn = new FairLimit({ places: 1 })
  readonly #end = new AbortController()
  readonly #firstLook = Promise.withResolvers<void>()
  /** Running imports that may not remove anything. */
  readonly #guests = new Set<AbortController>()
  #knowsLeftovers = false
  #isFull = false
  #problem = ''
  #timer: NodeJS.Timeout | undefined

  private constructor(options: RetentionOptions) {
    const { writer, paths, settings, events, bytesPerSecond } = options
    this.#options = options
    this.#removals = new HeldRemovals(writer)
    this.#room = new StoreRoom({ folder: paths.captures, settings, bytesPerSecond })
    this.#remover = new SegmentRemover({ writer, events, pinMs: settings.pinMs, signal: this.#end.signal })
  }

  /** Starts watching. The first check is already in progress when this returns. */
  static begin(options: RetentionOptions): Retention {
    const retention = new Retention(options)
    retention.check()
    retention.#timer = setInterval(() => retention.check(), INTERVAL_MS).unref()
    return retention
  }

  /**
   * Resolves when it is known whether the store has room: at once, unless `onFull` is "stop" and the first check is
   * still in progress.
   */
  async knowsRoom(): Promise<void> {
    if (this.#options.settings.onFull === 'stop') await this.#firstLook.promise
  }

  /** Fails with store-full if the last check found no room, and nothing may be removed to make more. */
  checkRoom(): void {
    if (!this.#isFull || this.#options.settings.onFull === 'roll') return
    throw new CapfleetError(
      'store-full',
      'the store has no room left within retention.maxBytes and retention.minFreeBytes, and retention.onFull is "stop"; delete captures, free space on the disk, or change these settings',
    )
  }

  report(): RetentionReport {
    return { minFreeBytes: this.#room.minFreeBytes, problem: this.#problem }
  }

  /** Called when a segment was finished, or time has passed. Not awaited. */
  check(): void {
    // A check in progress will see the same.
    if (this.#turn.used === 0) void this.makeRoom(0n)
  }

  /** Makes room for this many more bytes on the disk, as far as anything may be removed. Never rejects. */
  async makeRoom(bytes: bigint): Promise<void> {
    await this.#inTurn(() => this.#look({ stored: 0n, disk: bytes }))
  }

  /**
   * Reserves space for an import of files with this many bytes. Unless it `mayEvict`, nothing is ever removed for it:
   * it gets what is free now, while nobody else needs it. Fails with store-full.
   */
  async giveRoom(inputBytes: bigint, mayEvict: boolean): Promise<GivenRoom> {
    const { maxBytes, onFull } = this.#options.settings
    if (!mayEvict || onFull === 'stop') return await this.#giveFreeRoom()
    await this.makeRoom(inputBytes)
    return {
      maxBytes: maxBytes === 0 ? undefined : BigInt(maxBytes),
      signal: NEVER,
      hold: (bytes) => this.#hold(() => this.#look({ stored: bytes, disk: 0n })),
      [Symbol.dispose]: () => undefined,
    }
  }

  /** What its caller can do about an import for which there is no room. */
  wayOut(mayEvict: boolean): string {
    if (this.#options.settings.onFull === 'stop') return 'delete captures: retention.onFull is "stop"'
    if (mayEvict) return 'delete captures, or raise retention.maxBytes'
    return 'delete captures, or import on the device with --evict, which removes the oldest packets'
  }

  /** Ends between two removals at the latest. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#end.abort()
    this.#firstLook.resolve()
    await this.#inTurn(() => Promise.resolve())
    this.#removals[Symbol.dispose]()
  }

  async #giveFreeRoom(): Promise<GivenRoom> {
    const free = -missingBytes(await this.#inTurn(() => this.#measure(NOTHING)))
    if (free <= 0n) throw new CapfleetError('store-full', 'the store has no room left')
    const giveWay = new AbortController()
    this.#guests.add(giveWay)
    return {
      maxBytes: free,
      signal: giveWay.signal,
      hold: (held) => this.#hold(() => this.#measure({ stored: held, disk: 0n })),
      [Symbol.dispose]: () => void this.#guests.delete(giveWay),
    }
  }

  /** Until disposed, nobody else removes anything or gets space. `findLack` returns what is missing. */
  async #hold(findLack: () => Promise<Lack | undefined>): Promise<Disposable> {
    const turn = await this.#turn.acquire(NEVER)
    try {
      const lack = await findLack()
      if (lack === undefined) throw new CapfleetError('store-unavailable', this.#problem)
      if (!isLacking(lack)) return turn
      throw new CapfleetError(
        'store-full',
        `the store is ${missingBytes(lack)} bytes short for the finished capture`,
      )
    } catch (error) {
      turn[Symbol.dispose]()
      throw error
    }
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    using _turn = await this.#turn.acquire(NEVER)
    return await work()
  }

  /** Removes what has to be removed. Returns what is still missing, or undefined if that could not be determined. */
  async #look(need: Need): Promise<Lack | undefined> {
    try {
      const { reserve } = this.#options.writer
      const wasWhole = await reserve.isWhole()
      let lack = await this.#collect(need)
      // It was released for the removal, and must be available for the next one.
      if (wasWhole && !(await reserve.isWhole())) lack = await this.#collect(need)
      this.#noteProblem(this.#remover.problem)
      return lack
    } catch (error) {
      this.#noteProblem(error instanceof Error ? error.message : String(error))
      return undefined
    } finally {
      this.#firstLook.resolve()
    }
  }

  async #collect(need: Need): Promise<Lack> {
    const { queue } = this.#removals
    await this.#remover.retry()
    const missing = await this.#measure(need)
    if (!this.#knowsLeftovers) await this.#findLeftovers()
    // What they have written will be gone at the next check, and is no reason to remove anything now.
    if (isLacking(missing) && this.#stopGuests() && need.stored === 0n) return missing
    queue.returnAll()
    for (const name of this.#remover.failing) queue.setAside(name)
    const reserve = (await this.#options.writer.reserve.isWhole()) ? NO_RESERVE : RESERVE
    let lack = plus(missing, reserve)
    lack = await this.#removeWhile('age', lack, ({ storedNs }) => this.#isAged(storedNs))
    if (this.#options.settings.onFull === 'roll') {
      lack = await this.#removeWhile('space', lack, (_removal, left) => isLacking(left))
    }
    await this.#ageOutEmptied()
    if (reserve === RESERVE && !isLacking(lack)) await this.#fillReserve()
    lack = minus(lack, reserve)
    this.#noteFull(lack)
    return lack
  }

  /** Measures what is missing now, without changing anything. */
  async #measure(need: Need): Promise<Lack> {
    await this.#removals.refresh()
    const { queue } = this.#removals
    const isLimited = this.#options.settings.maxBytes > 0
    const openBytes = isLimited ? await this.#removals.openBytes() : 0n
    return await this.#room.lack(queue.heldBytes + this.#remover.waitingBytes + openBytes, need)
  }

  /** Removes the next segments while they are `due`. Returns what is left of `lack`. */
  async #removeWhile(
    reason: RemovalReason,
    lack: Lack,
    due: (removal: Removal<LogEntry>, left: Lack) => boolean,
  ): Promise<Lack> {
    let left = lack
    while (this.#remover.isAble) {
      const batch = this.#takeBatch(reason, left, due)
      const [first] = batch
      const capture = first && this.#removals.queuedOf(first.name)
      if (first === undefined || capture === undefined) return left
      const freed = await this.#remover.remove(capture, batch, reason)
      if (freed === undefined) this.#removals.queue.forgetTaken(first.name)
      else left = minus(left, freed)
      if (freed === undefined || this.#remover.failing.has(first.name)) {
        this.#removals.queue.setAside(first.name)
      }
    }
    return left
  }

  /** The next segments of one capture, taken out of the queue. */
  #takeBatch(
    reason: RemovalReason,
    lack: Lack,
    due: (removal: Removal<LogEntry>, left: Lack) => boolean,
  ): Removal<LogEntry>[] {
    const { queue } = this.#removals
    const order = reason === 'age' ? 'storing' : 'creation'
    const batch: Removal<LogEntry>[] = []
    let left = lack
    for (let next = queue.peek(order); next !== undefined; next = queue.peek(order)) {
      const isOfBatch = next.name === (batch[0]?.name ?? next.name) && batch.length < BATCH_MAX
      if (!isOfBatch || !due(next, left)) return batch
      queue.take(order)
      batch.push(next)
      left = minus(left, freedBy(next.segment))
    }
    return batch
  }

  /** Returns false if no import has to give way. */
  #stopGuests(): boolean {
    const reason = new CapfleetError('store-full', 'the space reserved for the import is needed by others')
    for (const guest of this.#guests) guest.abort(reason)
    return this.#guests.size > 0
  }

  #isAged(storedNs: bigint): boolean {
    const { settings, ages } = this.#options
    return settings.maxAgeMs > 0 && ages.isAged(storedNs, settings.maxAgeMs)
  }

  /** Removes captures without remaining segments and files. */
  async #ageOutEmptied(): Promise<void> {
    await this.#removals.refresh()
    for (const capture of this.#removals.emptied) {
      if (!this.#isOver(capture.stored)) continue
      if (this.#end.signal.aborted || this.#remover.hasFilesOf(capture)) continue
      await this.#ageOut(capture)
    }
  }

  /** A failure is reported; the next check tries again. */
  async #ageOut(capture: HeldCapture): Promise<void> {
    const { name, startNs, endNs } = capture.stored
    try {
      await this.#options.writer.ageOut(capture)
    } catch (error) {
      this.#remover.noteFailure(error)
      return
    }
    this.#options.events.append('capture-aged-out', {
      name,
      beginNs: String(startNs),
      endNs: String(endNs),
    })
  }

  /** A capture that never held a packet is removed by its age alone. */
  #isOver(capture: StoredCapture): boolean {
    return capture.removed !== undefined || this.#isAged(later(createdNs(capture), capture.endNs))
  }

  /** There is room for it; if that has gone meanwhile, the next check tries again. */
  async #fillReserve(): Promise<void> {
    const { writer, log } = this.#options
    try {
      await writer.reserve.fill()
    } catch (err) {
      log.debug('retention.reserve-failed', { err })
    }
  }

  #noteFull(lack: Lack): void {
    const isFull = isLacking(lack)
    if (isFull && !this.#isFull) {
      this.#options.events.append('store-full', {
        missingBytes: String(atLeastZero(missingBytes(lack))),
        missingFiles: String(atLeastZero(lack.files)),
      })
    }
    this.#isFull = isFull
  }

  /** '' = no problem. Reported on changes. */
  #noteProblem(problem: string): void {
    const { events, log } = this.#options
    if (problem !== '' && this.#problem === '') {
      log.error('retention.failed', { message: problem })
      events.append('retention-failed', { message: problem })
    } else if (problem === '' && this.#problem !== '') {
      log.info('retention.recovered')
      events.append('retention-recovered', {})
    }
    this.#problem = problem
  }

  /** Files whose removal had been logged when an earlier recorder ended before removing them. */
  async #findLeftovers(): Promise<void> {
    for await (const files of this.#removals.leftovers()) this.#remover.addLeftovers(files)
    this.#knowsLeftovers = true
  }
}

const NO_RESERVE: Lack = { stored: 0n, disk: 0n, files: 0n }

function atLeastZero(value: bigint): bigint {
  return value > 0n ? value : 0n
}

function later(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
