import { readdir, statfs } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { removeSegment } from '../../native/stored-segments.ts'
import { CapfleetError } from '../../src/base/error.ts'
import { FairLimit } from '../../src/base/fair-limit.ts'
import type { Log } from '../../src/base/log.ts'
import type { RetentionSettings } from '../appliance-config.ts'
import type { EventSink } from '../events/event-log.ts'
import type { ImportRoom } from '../link/import-request.ts'
import { CaptureCatalogue } from '../store/capture-catalogue.ts'
import type { CaptureRecord } from '../store/capture-record.ts'
import { type StorePaths, segmentPath } from '../store/store-paths.ts'
import { lastRemoved, names } from '../store/trimmed-record.ts'
import type { RecorderClock } from './recorder-clock.ts'
import { type Candidate, createdNs, removalOrder } from './retention-order.ts'
import { SegmentSizes } from './segment-sizes.ts'
import type { StoreWriter } from './store-writer.ts'

export interface RetentionOptions {
  readonly writer: StoreWriter
  readonly paths: StorePaths
  readonly settings: RetentionSettings
  readonly events: EventSink
  /** Says what is older than `retention.maxAgeMs`. */
  readonly ages: Pick<RecorderClock, 'isAged'>
  readonly log: Log
}

/** A fast capture fills a gigabyte within a second or so. */
const INTERVAL_MS = 1_000

/** Bytes that are wanted beyond what is there. */
interface Need {
  /** In segments of captures: what `maxBytes` limits. */
  readonly stored: bigint
  /** On the disk: what `minFreeBytes` limits. */
  readonly disk: bigint
}
const NOTHING: Need = { stored: 0n, disk: 0n }
const NEVER = new AbortController().signal

/** The room of one import, until dispose. */
export interface GivenRoom extends ImportRoom, Disposable {
  /** Aborts with store-full when the import has to give way. */
  readonly signal: AbortSignal
}

/** Files of a segment that no record names any more, and somebody still reads. */
interface Pinned {
  readonly path: string
  readonly sinceMs: number
  readonly bytes: bigint
}

/**
 * Keeps the store within its limits: the oldest finished segments go, first from their capture's
 * record, then from the disk, so that a crash leaves files without a record and never the reverse.
 * A segment that is read loses its files when the reader closes it, or when its time is up. Owned by
 * the recorder; one at a time works on a store.
 */
export class Retention implements AsyncDisposable {
  readonly #options: RetentionOptions
  readonly #catalogue: CaptureCatalogue
  readonly #sizes: SegmentSizes
  readonly #turn = new FairLimit({ places: 1 })
  /** Bytes for imports that run and may remove nothing. */
  readonly #guests = new Set<AbortController>()
  #pinned: Pinned[] = []
  #isFull = false
  #isEnding = false
  #timer: NodeJS.Timeout | undefined

  private constructor(options: RetentionOptions) {
    this.#options = options
    this.#catalogue = new CaptureCatalogue(options.paths, options.log)
    this.#sizes = new SegmentSizes((capture) => this.#catalogue.folderOf(capture))
  }

  /** Removes what an earlier recorder had to leave, and begins to watch. */
  static async start(options: RetentionOptions): Promise<Retention> {
    const retention = new Retention(options)
    await retention.#findLeftovers()
    await retention.#inTurn(() => retention.#collect(NOTHING))
    retention.#timer = setInterval(() => retention.check(), INTERVAL_MS).unref()
    return retention
  }

  /** Fails with store-full when there was no room at the last look, and nothing may be removed for more. */
  checkRoom(): void {
    if (!this.#isFull || this.#options.settings.onFull === 'roll') return
    throw new CapfleetError(
      'store-full',
      'the store has no room left, and retention.onFull is "stop"; delete captures',
    )
  }

  /** A segment was finished, or time has passed. Nobody waits for it. */
  check(): void {
    // Who works now will see the same.
    if (this.#turn.used > 0) return
    this.#inTurn(() => this.#collect(NOTHING)).catch((err: unknown) =>
      this.#options.log.error('retention.failed', { err }),
    )
  }

  /** A finished segment, by its path without ending, has grown: it counts with its new size. */
  async noteGrowth(path: string): Promise<void> {
    await this.#inTurn(() => Promise.resolve(this.#sizes.forget(path)))
    this.check()
  }

  /** Makes room on the disk for so many bytes more, as far as anything may be removed. */
  async makeRoom(bytes: bigint): Promise<void> {
    await this.#inTurn(() => this.#collect({ stored: 0n, disk: bytes }))
  }

  /**
   * Room for an import of files of so many bytes. Unless it `mayEvict`, nothing is ever removed for
   * it: it gets what is free now, for as long as nobody else needs that. Fails with store-full.
   */
  async giveRoom(inputBytes: bigint, mayEvict: boolean): Promise<GivenRoom> {
    const { maxBytes, onFull } = this.#options.settings
    if (!mayEvict || onFull === 'stop') return await this.#giveFreeRoom()
    await this.makeRoom(inputBytes)
    return {
      maxBytes: maxBytes === 0 ? undefined : BigInt(maxBytes),
      signal: NEVER,
      hold: (bytes) => this.#hold(() => this.#collect({ stored: bytes, disk: 0n })),
      [Symbol.dispose]: () => undefined,
    }
  }

  /** What its caller may do about an import for which there is no room. */
  wayOut(mayEvict: boolean): string {
    if (this.#options.settings.onFull === 'stop') return 'delete captures: retention.onFull is "stop"'
    if (mayEvict) return 'delete captures, or raise retention.maxBytes'
    return 'delete captures, or let the import remove the oldest packets with --evict'
  }

  /** Ends between two removals at the latest. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#isEnding = true
    await this.#inTurn(() => Promise.resolve())
  }

  async #giveFreeRoom(): Promise<GivenRoom> {
    const free = -(await this.#inTurn(() => this.#missing(NOTHING)))
    if (free <= 0n) throw new CapfleetError('store-full', 'the store has no room left')
    const giveWay = new AbortController()
    this.#guests.add(giveWay)
    return {
      maxBytes: free,
      signal: giveWay.signal,
      hold: (bytes) => this.#hold(() => this.#missing({ stored: bytes, disk: 0n })),
      [Symbol.dispose]: () => void this.#guests.delete(giveWay),
    }
  }

  /** Nobody else removes anything or gets room before dispose. `findMissing` tells how many bytes are missing. */
  async #hold(findMissing: () => Promise<bigint>): Promise<Disposable> {
    const turn = await this.#turn.acquire(NEVER)
    try {
      const missing = await findMissing()
      if (missing <= 0n) return turn
      throw new CapfleetError('store-full', `the store lacks ${missing} bytes for the finished capture`)
    } catch (error) {
      turn[Symbol.dispose]()
      throw error
    }
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    using _turn = await this.#turn.acquire(NEVER)
    return await work()
  }

  /** Gives the bytes that are still missing. */
  async #collect(need: Need): Promise<bigint> {
    await this.#removePinned()
    const captures = await this.#catalogue.listFinished()
    const excess = await this.#excess(captures, need)
    // What they have written will be gone at the next look, and is no reason to remove anything now.
    if (excess > 0n && this.#stopGuests() && need.stored === 0n) return excess
    const { onFull } = this.#options.settings
    let missing = excess
    for (const candidate of removalOrder(captures)) {
      const isAged = this.#isAged(candidate.storedNs)
      if (this.#isEnding || (!isAged && (missing <= 0n || onFull === 'stop'))) continue
      missing -= await this.#remove(candidate, isAged)
    }
    await this.#ageOutEmptied()
    this.#noteFull(missing > 0n, missing)
    return missing
  }

  /** False when no import has to give way. */
  #stopGuests(): boolean {
    const reason = new CapfleetError('store-full', 'others need the room that the import takes')
    for (const guest of this.#guests) guest.abort(reason)
    return this.#guests.size > 0
  }

  async #missing(need: Need): Promise<bigint> {
    return await this.#excess(await this.#catalogue.listFinished(), need)
  }

  /** How many bytes are too many; not positive when there is room. */
  async #excess(finished: readonly CaptureRecord[], need: Need): Promise<bigint> {
    const { settings, paths } = this.#options
    const { bavail, bsize } = await statfs(paths.captures, { bigint: true })
    const lacking = BigInt(settings.minFreeBytes) + need.disk - bavail * bsize
    if (settings.maxBytes === 0) return lacking
    const held = await this.#sizes.total(await this.#catalogue.list(), finished)
    const pinned = this.#pinned.reduce((sum, { bytes }) => sum + bytes, 0n)
    const over = held + pinned + need.stored - BigInt(settings.maxBytes)
    return over > lacking ? over : lacking
  }

  #isAged(storedNs: bigint): boolean {
    const { settings, ages } = this.#options
    return settings.maxAgeMs > 0 && ages.isAged(storedNs, settings.maxAgeMs)
  }

  /** Gives the bytes that this frees now. */
  async #remove({ capture, port, segment }: Candidate, isAged: boolean): Promise<bigint> {
    const path = segmentPath(this.#catalogue.folderOf(capture), port, segment.number)
    const bytes = await this.#sizes.of(path)
    await this.#options.writer.dropSegment(capture.name, { port, segment })
    this.#options.events.append('segment-removed', {
      name: capture.name,
      port,
      segment: segment.number,
      packets: String(segment.packets),
      bytes: String(bytes),
      beginNs: String(segment.minNs),
      endNs: String(segment.maxNs + 1n),
      reason: isAged ? 'age' : 'space',
    })
    return await this.#removeFiles({ path, bytes, sinceMs: performance.now() })
  }

  async #removeFiles(files: Pinned): Promise<bigint> {
    const evenIfRead = performance.now() - files.sinceMs >= this.#options.settings.pinMs
    if (await removeSegment(files.path, { evenIfRead })) return files.bytes
    this.#pinned.push(files)
    return 0n
  }

  async #removePinned(): Promise<void> {
    const pinned = this.#pinned
    this.#pinned = []
    for (const files of pinned) await this.#removeFiles(files)
  }

  /** Captures of which no segment and no file is left. */
  async #ageOutEmptied(): Promise<void> {
    for (const capture of await this.#catalogue.listFinished()) {
      const isEmpty = capture.streams.every(({ segments }) => segments.length === 0)
      if (capture.state !== 'closed' || !isEmpty || !this.#isOver(capture)) continue
      const folder = `${this.#catalogue.folderOf(capture)}/`
      if (this.#pinned.some(({ path }) => path.startsWith(folder))) continue
      await this.#options.writer.ageOut(capture)
      this.#options.events.append('capture-aged-out', {
        name: capture.name,
        beginNs: String(capture.startNs),
        endNs: String(capture.endNs),
      })
    }
  }

  /** A capture that never held a packet goes by its age alone. */
  #isOver(capture: CaptureRecord): boolean {
    return capture.removed !== undefined || this.#isAged(later(createdNs(capture), capture.endNs))
  }

  #noteFull(isFull: boolean, missing: bigint): void {
    if (isFull && !this.#isFull) this.#options.events.append('store-full', { missingBytes: String(missing) })
    this.#isFull = isFull
  }

  /** Files whose removal was on record when a recorder ended before it. */
  async #findLeftovers(): Promise<void> {
    for (const capture of await this.#catalogue.listFinished()) {
      for (const { port } of capture.removed?.segments ?? []) {
        const folder = join(this.#catalogue.folderOf(capture), `cap${port}`)
        for (const number of await segmentsIn(folder)) {
          const isRemoved = number <= lastRemoved(capture.removed, port) && !names(capture, port, number)
          if (!isRemoved) continue
          const path = segmentPath(this.#catalogue.folderOf(capture), port, number)
          this.#pinned.push({ path, bytes: await this.#sizes.of(path), sinceMs: performance.now() })
        }
      }
    }
  }
}

/** Numbers of the segments of which any file is in the folder. */
async function segmentsIn(folder: string): Promise<readonly number[]> {
  const files = await readdir(folder).catch(() => [])
  return [...new Set(files.map((file) => Number.parseInt(basename(file), 10)))].filter(Number.isInteger)
}

function later(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
