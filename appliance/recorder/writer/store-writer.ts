import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type ImportResult, importCaptureFiles } from '../../../native/import-capture-files.ts'
import { type LogEntry, LogEntryKind, SegmentFlag } from '../../../native/segment-entry.ts'
import { syncPath, syncTree } from '../../../src/shared/base/durable-files.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'
import { FairLimit } from '../../../src/shared/base/fair-limit.ts'
import { CAPTURE_NAME } from '../../../src/shared/query/capture-name-rule.ts'
import {
  checkImportRequest,
  checkStreamedImport,
  type ImportRequest,
  type ImportRoom,
  type ImportSettings,
  type ImportWatch,
  recordOfImport,
  type StreamedImport,
} from '../../link/import-request.ts'
import { addAgedOut } from '../../store/aged-out-list.ts'
import type { CaptureRecord } from '../../store/capture-record.ts'
import type { Drops } from '../../store/segment-table.ts'
import {
  DELETING_PREFIX,
  HIDDEN_PREFIX,
  IMPORTING_PREFIX,
  RECEIVING_PREFIX,
  type StorePaths,
  storePaths,
} from '../../store/store-paths.ts'
import { lastStoredNs, type StoredCapture } from '../../store/stored-capture.ts'
import { isTemporary } from '../../store/temporary-errors.ts'
import { readSkippedRun, type SkippedRun, writeSkippedRun } from '../clock/skipped-run.ts'
import { AddressTables } from './address-tables.ts'
import { captureNames, makeCaptureFolder, maybeActive } from './capture-folder.ts'
import { ChangeJournalWriter } from './change-journal-writer.ts'
import { HeldCapture } from './held-capture.ts'
import { Leftovers, removeTree } from './leftovers.ts'
import { refuseWithoutRoom, spoolInput } from './spooled-input.ts'
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
  readonly #imports: ImportSettings
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
    this.#imports = imports
    this.#leftovers = leftovers
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

  /**
   * Imports the files into one capture; those of which nothing could be imported are listed in its damages. Fails with
   * capture-exists, bad-parameter, bad-capture-file (none of the files could be), store-full, store-unavailable; or
   * with the signal's reason. A failed import leaves nothing behind.
   */
  async importCapture(
    request: ImportRequest,
    watch: ImportWatch = {},
    room?: ImportRoom,
  ): Promise<StoredCapture> {
    checkImportRequest(request)
    const folder = join(this.#paths.captures, request.name)
    const hidden = join(this.#paths.captures, `${IMPORTING_PREFIX}${request.name}`)
    await this.#leftovers.removeFirst(hidden)
    await this.#refuseTaken(request.name)
    await makeNew(hidden, request.name)
    try {
      const result = await importCaptureFiles({
        files: request.files,
        directory: hidden,
        ...this.#imports,
        maxBytes: room?.maxBytes,
        signal: watch.signal,
        onProgress: watch.onProgress,
      })
      watch.signal?.throwIfAborted()
      using _held = await room?.hold(await sizeOfTree(hidden))
      const segments = finishedEntries(result.streams)
      await HeldCapture.create(hidden, recordOfImport(request, result), segments)
      await syncTree(hidden)
      // In one turn, like makeCapture. Its space stays reserved until the capture itself counts.
      const held = await this.#inTurn(async () => {
        await rename(hidden, folder)
        await syncPath(this.#paths.captures)
        return await this.#readAgain(request.name)
      })
      if (held === undefined) throw unknownCapture(request.name)
      this.#addressTables.finish(folder, segments)
      return held.stored
    } catch (error) {
      await rm(hidden, { recursive: true, force: true })
      throw error
    }
  }

  /**
   * Imports the bytes of one file. Checks the request before it reads any of them. The whole file is on disk besides the
   * capture until the import ends, within the same room. Fails like importCapture(), or with the body's error.
   */
  async importStream(
    request: StreamedImport,
    body: AsyncIterable<Uint8Array>,
    watch: ImportWatch = {},
    room?: ImportRoom,
  ): Promise<StoredCapture> {
    checkStreamedImport(request)
    await this.#refuseTaken(request.name)
    refuseWithoutRoom(request.inputBytes ?? 0n, room?.maxBytes)
    const folder = join(this.#paths.captures, `${RECEIVING_PREFIX}${randomUUID()}`)
    await makeNew(folder, request.name)
    try {
      const path = join(folder, request.source)
      const { signal } = watch
      const bytes = await spoolInput(path, body, { maxBytes: room?.maxBytes, signal })
      const { name, description } = request
      return await this.importCapture({ name, description, files: [path] }, watch, room && less(room, bytes))
    } catch (error) {
      if (!(error instanceof CapfleetError)) throw error
      // Its sender knows the file by its name alone.
      const message = error.message.replaceAll(`${folder}/`, '')
      throw new CapfleetError(error.code, message, { ...error.details, cause: error })
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
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

  async #refuseTaken(name: string): Promise<void> {
    if (await exists(this.folderOf(name)))
      throw captureExists(name, 'a capture with this name already exists')
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

/** Log entries for segments that the engine has finished. */
export function finishedEntries(streams: ImportResult['streams']): readonly LogEntry[] {
  return streams.flatMap(({ port, linkType, snaplen, segments }) =>
    segments.map(({ isFlat, ...segment }) => ({
      ...segment,
      kind: LogEntryKind.finished,
      port,
      flags: isFlat ? SegmentFlag.flat : 0,
      linkType,
      snaplen,
    })),
  )
}

/** The room that is left next to this many bytes. */
function less(room: ImportRoom, bytes: bigint): ImportRoom {
  const maxBytes = room.maxBytes === undefined ? undefined : room.maxBytes - bytes
  return { maxBytes, hold: (held) => room.hold(held) }
}

async function makeNew(folder: string, name: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o750 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      throw captureExists(name, 'a capture with this name is being imported')
    }
    throw new CapfleetError('store-unavailable', `cannot write the store: ${String(error)}`, { cause: error })
  }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}

async function sizeOfTree(folder: string): Promise<bigint> {
  let bytes = 0n
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name), { bigint: true })).size
  }
  return bytes
}

function captureExists(name: string, reason: string): CapfleetError {
  return new CapfleetError('capture-exists', `${name}: ${reason}; choose another name or delete it`, {
    param: 'name',
  })
}

function unknownCapture(name: string): CapfleetError {
  return new CapfleetError('unknown-capture', `no capture has the full name "${name.slice(0, 200)}"`, {
    param: 'StreamName',
  })
}
