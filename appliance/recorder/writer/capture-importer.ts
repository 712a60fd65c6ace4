import { randomUUID } from 'node:crypto'
import { mkdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { importCaptureFiles } from '../../../native/import-capture-files.ts'
import type { LogEntry } from '../../../native/segment-entry.ts'
import { syncTree } from '../../../src/shared/base/durable-files.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'
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
import { IMPORTING_PREFIX, RECEIVING_PREFIX, type StorePaths } from '../../store/store-paths.ts'
import type { StoredCapture } from '../../store/stored-capture.ts'
import { sizeOfTree } from './capture-folder.ts'
import { finishedEntries } from './finished-entries.ts'
import { HeldCapture } from './held-capture.ts'
import type { Leftovers } from './leftovers.ts'
import { refuseWithoutRoom, spoolInput } from './spooled-input.ts'

/** What imports need of the store's writer. */
interface ImporterParts {
  readonly paths: StorePaths
  readonly leftovers: Leftovers
  readonly settings: ImportSettings
  /** Makes a complete folder the capture of this name. */
  readonly adopt: (name: string, hidden: string, segments: readonly LogEntry[]) => Promise<StoredCapture>
}

/** Makes captures of files: each under a hidden name, until it is complete. */
export class CaptureImporter {
  readonly #paths: StorePaths
  readonly #leftovers: Leftovers
  readonly #settings: ImportSettings
  readonly #adopt: ImporterParts['adopt']

  constructor({ paths, leftovers, settings, adopt }: ImporterParts) {
    this.#paths = paths
    this.#leftovers = leftovers
    this.#settings = settings
    this.#adopt = adopt
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
    const hidden = join(this.#paths.captures, `${IMPORTING_PREFIX}${request.name}`)
    await this.#leftovers.removeFirst(hidden)
    await this.#refuseTaken(request.name)
    await makeNew(hidden, request.name)
    try {
      const result = await importCaptureFiles({
        files: request.files,
        directory: hidden,
        ...this.#settings,
        maxBytes: room?.maxBytes,
        signal: watch.signal,
        onProgress: watch.onProgress,
      })
      watch.signal?.throwIfAborted()
      using _held = await room?.hold(await sizeOfTree(hidden))
      const segments = finishedEntries(result.streams)
      await HeldCapture.create(hidden, recordOfImport(request, result), segments)
      await syncTree(hidden)
      // Its space stays reserved until the capture itself counts.
      return await this.#adopt(request.name, hidden, segments)
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

  async #refuseTaken(name: string): Promise<void> {
    if (await exists(join(this.#paths.captures, name)))
      throw captureExists(name, 'a capture with this name already exists')
  }
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

function captureExists(name: string, reason: string): CapfleetError {
  return new CapfleetError('capture-exists', `${name}: ${reason}; choose another name or delete it`, {
    param: 'name',
  })
}
