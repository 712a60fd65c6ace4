import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { type LogEntry, SegmentFlag } from '../../../native/segment-entry.ts'
import { syncPath } from '../../../src/shared/base/durable-files.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'
import { FairLimit } from '../../../src/shared/base/fair-limit.ts'
import { CAPTURE_NAME } from '../../../src/shared/query/capture-name-rule.ts'
import type {
  ImportRequest,
  ImportRoom,
  ImportSettings,
  ImportWatch,
  StreamedImport,
} from '../../link/import-request.ts'
import { addAgedOut } from '../../store/aged-out-list.ts'
import type { CaptureRecord } from '../../store/capture-record.ts'
import type { Drops } from '../../store/segment-table.ts'
import { DELETING_PREFIX, HIDDEN_PREFIX, type StorePaths, storePaths } from '../../store/store-paths.ts'
import { lastStoredNs, type StoredCapture } from '../../store/stored-capture.ts'
import { isTemporary } from '../../store/temporary-errors.ts'
import { readSkippedRun, type SkippedRun, writeSkippedRun } from '../clock/skipped-run.ts'
import { AddressTables } from './address-tables.ts'
import { captureNames, makeCaptureFolder, maybeActive, sizeOfTree } from './capture-folder.ts'
import { CaptureImporter } from './capture-importer.ts'
import { ChangeJournalWriter } from './change-journal-writer.ts'
import { HeldCapture } from './held-capture.ts'
import { Leftovers, removeTree } from './leftovers.ts'
import { checkFormat, refuseWithoutCaptures } from './store-format.ts'
import { lockStore } from './store-lock.ts'
import { StoreReserve } from './store-reserve.ts'

/** For turns that are short and always end. */
const UNTIL_DONE = new AbortController().signal

/** Called after each change: with the capture as it is now, or undefined if it was removed. */
export type CaptureWatcher = (name: string, capture: HeldCapture | undefined) => void
/** Called for a capture whose files were damaged, and have been repaired as far as possible. */
export type DamageWatcher = (name: string, problems: readonly string[]) => void

interface WriterParts {
  readonly lock: Disposable
  readonly journal: ChangeJournalWriter
  readonly leftovers: Leftovers
  readonly reserve: StoreReserve
}

/**
 * The only code that changes a store. A capture appears and disappears as a whole, by one rename. The contents of
 * captures stay in memory once read: a change costs the same in a store of any size.
 */
export class StoreWriter implements AsyncDisposable {
  readonly #paths: StorePaths
  readonly #lock: Disposable
  readonly #journal: ChangeJournalWriter
  readonly #importer: CaptureImporter
  /** Space for the small files that this class writes when the disk is full. */
  readonly reserve: StoreReserve
  readonly #leftovers: Leftovers
  readonly #addressTables = new AddressTables()
  readonly #held = new Map<string, HeldCapture>()
  readonly #watchers = new Set<CaptureWatcher>()
  readonly #damageWatchers = new Set<DamageWatcher>()
  /** Captures are read and changed one at a time. */
  readonly #turn = new FairLimit({ places: 1 })
  #isEnding = false
  /** For what the store held when it was opened, as far as it has been read. */
  #lastStoredNs: bigint | undefined
  #loading: Promise<void> | undefined

  private constructor(
    paths: StorePaths,
    { lock, journal, leftovers, reserve }: WriterParts,
    imports: ImportSettings,
  ) {
    this.#paths = paths
    this.#lock = lock
    this.#journal = journal
    this.#leftovers = leftovers
    this.#importer = new CaptureImporter({
      paths,
      leftovers,
      settings: imports,
      adopt: (name, hidden, segments) => this.#adopt(name, hidden, segments),
    })
    this.reserve = reserve
  }

  /**
   * Creates the store if missing, locks it and starts to remove what an interrupted writer left. Fails with
   * store-unavailable if the folder cannot be used or has another writer.
   */
  static async open(root: string, imports: ImportSettings = {}): Promise<StoreWriter> {
    const paths = storePaths(root)
    await refuseWithoutCaptures(paths)
    try {
      await mkdir(paths.captures, { recursive: true, mode: 0o750 })
    } catch (cause) {
      throw new CapfleetError('store-unavailable', `cannot create the store ${root}: ${String(cause)}`, {
        cause,
      })
    }
    const lock = await lockStore(paths)
    try {
      await checkFormat(paths)
      const reserve = new StoreReserve(paths.reserve)
      const journal = await reserve.use(() => ChangeJournalWriter.open(paths.changes))
      const hidden = (await readdir(paths.captures)).filter((name) => name.startsWith(HIDDEN_PREFIX))
      const leftovers = new Leftovers(hidden.map((name) => join(paths.captures, name)))
      return new StoreWriter(paths, { lock, journal, leftovers, reserve }, imports)
    } catch (error) {
      lock[Symbol.dispose]()
      throw error
    }
  }

  /** Reports every change until the returned function is called. */
  watch(watcher: CaptureWatcher): () => void {
    this.#watchers.add(watcher)
    return () => void this.#watchers.delete(watcher)
  }

  /** Reports damage that was found, until the returned function is called. */
  watchDamage(watcher: DamageWatcher): () => void {
    this.#damageWatchers.add(watcher)
    return () => void this.#damageWatchers.delete(watcher)
  }

  /**
   * Reads every capture of the store, upgrades those of format 1 and repairs damaged ones; done once, in the
   * background. One that cannot be read is left out and reported to damage watchers. Rejects only if the folder of all
   * captures cannot be read; another call tries again.
   */
  load(): Promise<void> {
    this.#loading ??= this.#loadAll().catch((error: unknown) => {
      this.#loading = undefined
      throw error
    })
    return this.#loading
  }

  /**
   * When anything was last stored before the store was opened; undefined: it was empty. What was recorded or imported
   * since does not count. Reads the store, and fails, like load().
   */
  async lastStoredAtStart(): Promise<bigint | undefined> {
    await this.load()
    return this.#lastStoredNs
  }

  /** All captures that have been read: after load(), every one of the store. */
  get captures(): ReadonlyMap<string, HeldCapture> {
    return this.#held
  }

  /** Removes what an interrupted writer left, before it resolves. Fails with the system's error. */
  removeLeftovers(): Promise<void> {
    return this.#leftovers.remove()
  }

  /** See CaptureImporter. */
  importCapture(request: ImportRequest, watch?: ImportWatch, room?: ImportRoom): Promise<StoredCapture> {
    return this.#importer.importCapture(request, watch, room)
  }

  /** See CaptureImporter. */
  importStream(
    request: StreamedImport,
    body: AsyncIterable<Uint8Array>,
    watch?: ImportWatch,
    room?: ImportRoom,
  ): Promise<StoredCapture> {
    return this.#importer.importStream(request, body, watch, room)
  }

  /** Removes a capture; a reader that has its files open may fail. Fails with unknown-capture. */
  async deleteCapture(name: string): Promise<{ readonly bytesFreed: bigint }> {
    if (!CAPTURE_NAME.test(name)) throw unknownCapture(name)
    // One that cannot be read can be deleted.
    const held = await this.#inTurn(() => this.#heldOrRead(name)).catch(() => undefined)
    return await this.#delete(name, held)
  }

  async #delete(name: string, held: HeldCapture | undefined): Promise<{ readonly bytesFreed: bigint }> {
    const hidden = join(this.#paths.captures, `${DELETING_PREFIX}${randomUUID()}`)
    // Not in the turn, which these uses may be waiting for.
    await held?.end()
    await this.#inTurn(async () => {
      // One that has the name only since then is another one, whose uses have not ended.
      if (this.#held.get(name) !== held) throw unknownCapture(name)
      await rename(join(this.#paths.captures, name), hidden).catch(async (error: unknown) => {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw unknownCapture(name)
        // It may be used again.
        if (held !== undefined) await this.#readAgain(name)
        throw error
      })
      this.#held.delete(name)
      await this.#tell(name)
      await syncPath(this.#paths.captures)
    })
    const bytesFreed = await sizeOfTree(hidden)
    await removeTree(hidden, this.#leftovers.signal)
    return { bytesFreed }
  }

  /** Creates a capture to record into; returns false if its name is taken. */
  async makeCapture(record: CaptureRecord): Promise<boolean> {
    // In the same turn as reading it, so that it does not count as part of the earlier store.
    return await this.#inTurn(async () => {
      if (!(await this.reserve.use(() => makeCaptureFolder(this.#paths, record)))) return false
      await this.#readAgain(record.name)
      return true
    })
  }

  /** Replaces the record of a capture by the result of `change`. Fails with unknown-capture, or with disk errors. */
  async changeRecord(name: string, change: (record: CaptureRecord) => CaptureRecord): Promise<void> {
    await this.#change(name, (capture) => capture.changeRecord(change))
  }

  /**
   * Adds finished segments to the log of a capture, with its losses so far. Fails with unknown-capture, or with disk
   * errors.
   */
  async addSegments(name: string, segments: readonly LogEntry[], drops?: Drops): Promise<void> {
    await this.#change(name, (capture) => capture.addSegments(segments, drops))
    this.#addressTables.recorded(this.folderOf(name), segments)
  }

  /**
   * Replaces the log's statement about a finished segment by what `change` makes of it; if it says that packets are
   * lost, `reasons` are reported as damage. Does nothing if the segment or the capture was removed meanwhile, even if
   * another one has its name.
   */
  async correctSegment(
    capture: HeldCapture,
    { port, number }: Pick<LogEntry, 'port' | 'number'>,
    change: (now: LogEntry) => LogEntry,
    reasons: readonly string[] = [],
  ): Promise<void> {
    await this.#inTurn(async () => {
      const { name } = capture.record
      const before = capture.table.portOf(port)?.find(number)
      if (this.#held.get(name) !== capture || before === undefined) return
      const segment = change(before)
      await this.reserve.use(() => capture.addSegments([segment]))
      await this.#tell(name)
      const isMarked = (before.flags & SegmentFlag.damaged) !== 0
      const isLess = !isMarked || segment.packets < before.packets
      if ((segment.flags & SegmentFlag.damaged) !== 0 && isLess) this.#tellDamage(name, reasons)
    })
  }

  /**
   * Deviations of a capture's record, copy and log on disk from what was written; with `repair` they are written again
   * from memory. Fails with disk errors.
   */
  async checkRecord(name: string, { repair }: { readonly repair: boolean }): Promise<readonly string[]> {
    return await this.#inTurn(async () => {
      const held = this.#held.get(name)
      const problems = (await held?.check()) ?? []
      if (held !== undefined && repair && problems.length > 0) {
        await this.reserve.use(() => held.rewrite())
        await this.#tell(name)
      }
      return problems
    })
  }

  /**
   * Removes finished segments from a capture, durably; the caller then removes their files. Needs no new space on the
   * disk. Fails with unknown-capture if the capture no longer exists, even if another one has its name, or with disk
   * errors.
   */
  async dropSegments(capture: HeldCapture, segments: readonly LogEntry[]): Promise<void> {
    const { name } = capture.record
    await this.#change(name, async (held) => {
      if (held !== capture) throw unknownCapture(name)
      await held.dropSegments(segments)
    })
  }

  /** Removes a capture of which nothing is left, and remembers its name. Fails like deleteCapture. */
  async ageOut(capture: HeldCapture): Promise<void> {
    const { name, startNs, endNs } = capture.stored
    await this.reserve.use(() => addAgedOut(this.#paths, { name, startNs, endNs }))
    await this.#delete(name, capture)
  }

  /** Returns undefined if the capture does not exist. */
  async captureOf(name: string): Promise<StoredCapture | undefined> {
    return (await this.#inTurn(() => this.#heldOrRead(name)))?.stored
  }

  /** The run of a schedule that was stopped by command, or undefined. */
  skippedRun(): Promise<SkippedRun | undefined> {
    return readSkippedRun(this.#paths)
  }

  keepSkippedRun(run: SkippedRun): Promise<void> {
    return this.reserve.use(() => writeSkippedRun(this.#paths, run))
  }

  /**
   * Captures that are being recorded, or were when the recorder ended; newest first. One that cannot be read is left out;
   * load() reports it.
   */
  async activeCaptures(): Promise<readonly StoredCapture[]> {
    const active: StoredCapture[] = []
    for (const name of await maybeActive(this.#paths)) {
      const held = await this.#inTurn(() => this.#heldOrRead(name)).catch((error: unknown) => {
        if (isTemporary(error)) throw error
        return undefined
      })
      if (held?.record.state === 'active') active.push(held.stored)
    }
    return active.toSorted((a, b) => (a.startNs > b.startNs ? -1 : 1))
  }

  /** The folder of an existing capture. */
  folderOf(name: string): string {
    return join(this.#paths.captures, name)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true
    await this.#leftovers[Symbol.asyncDispose]()
    await this.#addressTables[Symbol.asyncDispose]()
    await this.#loading?.catch(() => undefined)
    await this.#journal[Symbol.asyncDispose]()
    this.#lock[Symbol.dispose]()
  }

  async #loadAll(): Promise<void> {
    for (const name of await captureNames(this.#paths)) {
      if (this.#isEnding) return
      await this.#inTurn(() => this.#heldOrRead(name)).catch((error: unknown) =>
        this.#tellDamage(name, [String(error)]),
      )
    }
  }

  async #change(name: string, change: (capture: HeldCapture) => Promise<void>): Promise<void> {
    await this.#inTurn(async () => {
      const held = await this.#heldOrRead(name)
      if (held === undefined) throw unknownCapture(name)
      try {
        await this.reserve.use(() => change(held))
      } finally {
        // Even after a failure, which may have left something.
        await this.#tell(name)
      }
    })
  }

  async #heldOrRead(name: string): Promise<HeldCapture | undefined> {
    const known = this.#held.get(name)
    if (known !== undefined) return known
    const held = await this.#readAgain(name)
    const storedNs = held && lastStoredNs(held.stored)
    if (storedNs !== undefined && storedNs > (this.#lastStoredNs ?? storedNs - 1n))
      this.#lastStoredNs = storedNs
    return held
  }

  /** Makes the complete folder of an import the capture of this name; in one turn, like makeCapture. */
  async #adopt(name: string, hidden: string, segments: readonly LogEntry[]): Promise<StoredCapture> {
    const folder = this.folderOf(name)
    const held = await this.#inTurn(async () => {
      await rename(hidden, folder)
      await syncPath(this.#paths.captures)
      return await this.#readAgain(name)
    })
    if (held === undefined) throw unknownCapture(name)
    this.#addressTables.finish(folder, segments)
    return held.stored
  }

  /** The capture as it is on disk, upgraded and repaired. */
  async #readAgain(name: string): Promise<HeldCapture | undefined> {
    const held = await HeldCapture.read(this.folderOf(name), name)
    if (held === undefined) return undefined
    this.#held.set(name, held)
    if (held.problems.length > 0) this.#tellDamage(name, held.problems)
    // What cannot be written now is written with the next change, or by the next recorder.
    await held
      .mend()
      .catch((error: unknown) => this.#tellDamage(name, [`cannot be repaired: ${String(error)}`]))
    await this.#tell(name)
    return held
  }

  async #tell(name: string): Promise<void> {
    await this.#journal.note(name)
    for (const watcher of this.#watchers) watcher(name, this.#held.get(name))
  }

  #tellDamage(name: string, problems: readonly string[]): void {
    for (const watcher of this.#damageWatchers) watcher(name, problems)
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    using _turn = await this.#turn.acquire(UNTIL_DONE)
    return await work()
  }
}

function unknownCapture(name: string): CapfleetError {
  return new CapfleetError('unknown-capture', `no capture has the full name "${name.slice(0, 200)}"`, {
    param: 'StreamName',
  })
}
