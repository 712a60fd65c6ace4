import { randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { importCaptureFiles } from '../../native/import-capture-files.ts'
import { syncPath, syncTree } from '../../src/base/durable-files.ts'
import { CapfleetError } from '../../src/base/error.ts'
import { FairLimit } from '../../src/base/fair-limit.ts'
import { CAPTURE_NAME } from '../../src/query/capture-name-rule.ts'
import {
  checkImportRequest,
  type ImportRequest,
  type ImportRoom,
  type ImportSettings,
  type ImportWatch,
  recordOfImport,
} from '../link/import-request.ts'
import { addAgedOut } from '../store/aged-out-list.ts'
import { type CaptureRecord, toJson } from '../store/capture-record.ts'
import {
  CAPTURE_RECORD_NAME,
  DELETING_PREFIX,
  HIDDEN_PREFIX,
  IMPORTING_PREFIX,
  type StorePaths,
  storePaths,
} from '../store/store-paths.ts'
import { type SegmentOfPort, withoutRemoved, withoutSegment } from '../store/trimmed-record.ts'
import { activeRecords, changeCaptureRecord, makeCaptureFolder, readCaptureRecord } from './capture-folder.ts'
import { Leftovers, removeTree } from './leftovers.ts'
import { readSkippedRun, type SkippedRun, writeSkippedRun } from './skipped-run.ts'
import { lockStore } from './store-lock.ts'
import { StoreReserve } from './store-reserve.ts'

const STORE_FORMAT = { format: 1 }
/** For turns that are short and always end. */
const UNTIL_DONE = new AbortController().signal

/** The only code that changes a store. A capture appears and disappears whole, by one rename. */
export class StoreWriter implements AsyncDisposable {
  readonly #paths: StorePaths
  readonly #lock: Disposable
  readonly #imports: ImportSettings
  /** Space for the small files that this class writes when the disk is full. */
  readonly reserve: StoreReserve
  readonly #leftovers: Leftovers
  /** Records are read, changed and replaced by one at a time. */
  readonly #recordTurn = new FairLimit({ places: 1 })

  private constructor(paths: StorePaths, lock: Disposable, imports: ImportSettings, leftovers: Leftovers) {
    this.#paths = paths
    this.#lock = lock
    this.#imports = imports
    this.#leftovers = leftovers
    this.reserve = new StoreReserve(paths.reserve)
  }

  /**
   * Makes the store when it is missing, locks it and begins to remove what an interrupted writer left.
   * Fails with store-unavailable when the folder cannot be used or has another writer.
   */
  static async open(root: string, imports: ImportSettings = {}): Promise<StoreWriter> {
    const paths = storePaths(root)
    try {
      await mkdir(paths.captures, { recursive: true, mode: 0o750 })
    } catch (cause) {
      throw new CapfleetError('store-unavailable', `cannot make the store ${root}: ${String(cause)}`, {
        cause,
      })
    }
    const lock = await lockStore(paths)
    try {
      await checkFormat(paths)
      const hidden = (await readdir(paths.captures)).filter((name) => name.startsWith(HIDDEN_PREFIX))
      const leftovers = new Leftovers(hidden.map((name) => join(paths.captures, name)))
      return new StoreWriter(paths, lock, imports, leftovers)
    } catch (error) {
      lock[Symbol.dispose]()
      throw error
    }
  }

  /** Removes what an interrupted writer left; it is removed when this resolves. Fails with the system's error. */
  removeLeftovers(): Promise<void> {
    return this.#leftovers.remove()
  }

  /**
   * Makes one capture of the files; those of which nothing could be imported are named in its damages.
   * Fails with capture-exists, bad-parameter, bad-capture-file (none of the files could be),
   * store-full, store-unavailable; or with the signal's reason. Nothing remains of a failed import.
   */
  async importCapture(
    request: ImportRequest,
    watch: ImportWatch = {},
    room?: ImportRoom,
  ): Promise<CaptureRecord> {
    checkImportRequest(request)
    const folder = join(this.#paths.captures, request.name)
    const hidden = join(this.#paths.captures, `${IMPORTING_PREFIX}${request.name}`)
    await this.#leftovers.removeFirst(hidden)
    if (await exists(folder)) throw captureExists(request.name, 'a capture of this name exists')
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
      const record = recordOfImport(request, result)
      await writeFile(join(hidden, CAPTURE_RECORD_NAME), `${toJson(record)}\n`)
      await syncTree(hidden)
      await rename(hidden, folder)
      await syncPath(this.#paths.captures)
      return record
    } catch (error) {
      await rm(hidden, { recursive: true, force: true })
      throw error
    }
  }

  /** Removes a capture; a reader that has its files open may fail. Fails with unknown-capture. */
  async deleteCapture(name: string): Promise<{ readonly bytesFreed: bigint }> {
    if (!CAPTURE_NAME.test(name)) throw unknownCapture(name)
    const hidden = join(this.#paths.captures, `${DELETING_PREFIX}${randomUUID()}`)
    {
      using _turn = await this.#recordTurn.acquire(UNTIL_DONE)
      await rename(join(this.#paths.captures, name), hidden).catch((error: unknown) => {
        throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? unknownCapture(name) : error
      })
      await syncPath(this.#paths.captures)
    }
    const bytesFreed = await sizeOfTree(hidden)
    await removeTree(hidden, this.#leftovers.signal)
    return { bytesFreed }
  }

  /** Makes a capture to record into; false when its name is taken. */
  makeCapture(record: CaptureRecord): Promise<boolean> {
    return this.reserve.use(() => makeCaptureFolder(this.#paths, record))
  }

  /**
   * One change after the other: who changes a record sees what was written before. Who makes the
   * change need not know which segments were removed: they stay out of the record.
   */
  async changeRecord(name: string, change: (record: CaptureRecord) => CaptureRecord): Promise<void> {
    await this.#change(name, (record) => withoutRemoved(change(record), record))
  }

  /**
   * Takes finished segments out of their capture's record, durably and together; their files are the
   * caller's to remove then. Fails with the system's error when the record cannot be changed.
   */
  async dropSegments(name: string, victims: readonly SegmentOfPort[]): Promise<void> {
    await this.#change(name, (record) => victims.reduce(withoutSegment, record))
  }

  /** Removes a capture of which nothing is left, and remembers its name. Fails as deleteCapture. */
  async ageOut(record: CaptureRecord): Promise<void> {
    const { name, startNs, endNs } = record
    await this.reserve.use(() => addAgedOut(this.#paths, { name, startNs, endNs }))
    await this.deleteCapture(name)
  }

  /** As it is on the disk; undefined when there is no such capture. */
  recordOf(name: string): Promise<CaptureRecord | undefined> {
    return readCaptureRecord(this.#paths, name)
  }

  /** The run of a schedule that was stopped by command; undefined when there is none. */
  skippedRun(): Promise<SkippedRun | undefined> {
    return readSkippedRun(this.#paths)
  }

  keepSkippedRun(run: SkippedRun): Promise<void> {
    return this.reserve.use(() => writeSkippedRun(this.#paths, run))
  }

  /** Captures that are being recorded, or were when the recorder ended; newest first. */
  activeCaptures(): Promise<readonly CaptureRecord[]> {
    return activeRecords(this.#paths)
  }

  /** The folder of a capture that exists. */
  folderOf(name: string): string {
    return join(this.#paths.captures, name)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#leftovers[Symbol.asyncDispose]()
    this.#lock[Symbol.dispose]()
  }

  async #change(name: string, change: (record: CaptureRecord) => CaptureRecord): Promise<void> {
    using _turn = await this.#recordTurn.acquire(UNTIL_DONE)
    await this.reserve.use(() => changeCaptureRecord(this.#paths, name, change))
  }
}

async function checkFormat(paths: StorePaths): Promise<void> {
  const text = await readUnlessNew(paths.format)
  if (text === undefined) {
    await writeFile(paths.format, `${JSON.stringify(STORE_FORMAT)}\n`)
    await syncPath(paths.format)
    await syncPath(paths.root)
    return
  }
  if (text.trim() !== JSON.stringify(STORE_FORMAT)) {
    throw new CapfleetError(
      'store-unavailable',
      `${paths.format} does not say {"format":1}: this is no store, or one of a newer capfleet`,
    )
  }
}

/** undefined for a store that is being made; a format that cannot be read is no reason to write a new one. */
async function readUnlessNew(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new CapfleetError('store-unavailable', `cannot read the store: ${String(error)}`, { cause: error })
  }
}

async function makeNew(folder: string, name: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o750 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      throw captureExists(name, 'a capture of this name is being imported')
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
