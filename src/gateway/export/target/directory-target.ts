/**
 * Exports in a folder on a disk shared by all gateways and workers: `<path>/<exportId>/<name>`. Files are written in
 * `<path>/.work`, so that publishing one is a rename. That folder also shows that the disk is mounted: nothing is
 * written into a mount point without its disk, and no file there is considered removed.
 */
import { createHash, randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { access, constants, mkdir, open, rename, rm, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { syncPath } from '../../../shared/base/durable-files.ts'
import { CapfleetError } from '../../../shared/base/error.ts'
import type { ByteRange, ExportTarget, FilePlace, FinishedFile, PublishOptions } from './export-target.ts'
import { assertExportId, assertPlace, fileIsLost, isStillThere } from './finished-file.ts'

/** Other users of the machine must not be able to read packets. */
const FOLDER_MODE = 0o700
const FILE_MODE = 0o600
const COPY_PIECE_BYTES = 1_048_576

export class DirectoryTarget implements ExportTarget {
  readonly name: string
  readonly workFolder: string
  readonly #path: string

  /** `path` is absolute. */
  constructor(name: string, path: string) {
    this.name = name
    this.#path = path
    this.workFolder = join(path, '.work')
  }

  async check(): Promise<void> {
    try {
      await mkdir(this.workFolder, { recursive: true, mode: FOLDER_MODE })
      for (const folder of [this.#path, this.workFolder])
        await access(folder, constants.R_OK | constants.W_OK | constants.X_OK)
    } catch (cause) {
      throw new CapfleetError(
        'bad-config',
        `the target ${this.name} cannot be used: ${(cause as Error).message}; path must be a folder that this user may write to, or must not exist yet`,
        { cause },
      )
    }
  }

  async publish(file: FinishedFile, options: PublishOptions): Promise<void> {
    const place = this.#placeOf(file)
    const { signal, onProgress } = options
    signal.throwIfAborted()
    await this.#attempt(signal, async () => {
      await mkdir(dirname(place), { recursive: true, mode: FOLDER_MODE })
      const how = await moveIn(file, place, options)
      if (how === 'gone' && !(await isKept(file, place))) throw fileIsLost(file)
      // A killed attempt may not have synced this.
      await syncPath(dirname(place))
      await syncPath(this.#path)
      if (how === 'copied') await rm(file.path, { force: true })
    })
    onProgress?.(file.bytes)
  }

  async open(place: FilePlace, range?: ByteRange): Promise<Readable> {
    const path = this.#placeOf(place)
    const handle = await this.#attempt(undefined, () => openKept(path, place))
    return handle.createReadStream(range === undefined ? {} : { start: range.first, end: range.last })
  }

  async removeFile(place: FilePlace): Promise<void> {
    const path = this.#placeOf(place)
    await this.#attempt(undefined, () => rm(path, { force: true }))
  }

  async remove(exportId: string): Promise<void> {
    assertExportId(exportId)
    await this.#attempt(undefined, async () => {
      await rm(join(this.#path, exportId), { recursive: true, force: true })
      await syncPath(this.#path)
    })
  }

  async freeBytes(): Promise<bigint> {
    return await this.#attempt(undefined, async () => {
      const { bavail, bsize } = await statfs(this.#path, { bigint: true })
      return bavail * bsize
    })
  }

  #placeOf(place: FilePlace): string {
    assertPlace(place)
    return join(this.#path, place.exportId, place.name)
  }

  /** Fails with the errors of the contract. */
  async #attempt<Result>(signal: AbortSignal | undefined, action: () => Promise<Result>): Promise<Result> {
    try {
      await access(this.workFolder)
      return await action()
    } catch (cause) {
      signal?.throwIfAborted()
      if (cause instanceof CapfleetError) throw cause
      const { code = String(cause) } = cause as NodeJS.ErrnoException
      if (code === 'ENOSPC' || code === 'EDQUOT')
        throw new CapfleetError(
          'export-store-full',
          `the target ${this.name} has no space left (${code}); remove exports, or add space`,
          { cause },
        )
      throw new CapfleetError(
        'export-target-unavailable',
        `the folder of the target ${this.name} cannot be used (${code}); check that its disk is mounted and writable`,
        { cause },
      )
    }
  }
}

/** 'gone' if an earlier or concurrent attempt has moved the file. */
async function moveIn(file: FinishedFile, place: string, options: PublishOptions): Promise<Move> {
  if (!(await isStillThere(file))) return 'gone'
  try {
    await syncPath(file.path)
    return await renameOrCopy(file, place, options)
  } catch (error) {
    const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT' && !(await isStillThere(file))
    if (isGone) return 'gone'
    throw error
  }
}

type Move = 'renamed' | 'copied' | 'gone'

async function renameOrCopy(file: FinishedFile, place: string, options: PublishOptions): Promise<Move> {
  try {
    await rename(file.path, place)
    return 'renamed'
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    await copyIn(file, place, options)
    return 'copied'
  }
}

/** For a file from another file system. The copy gets its name once it is complete and on disk. */
async function copyIn(
  file: FinishedFile,
  place: string,
  { signal, onProgress }: PublishOptions,
): Promise<void> {
  const partial = join(dirname(place), `.${randomUUID()}.partial`)
  let bytes = 0
  const counted = async function* (pieces: AsyncIterable<Buffer>) {
    for await (const piece of pieces) {
      yield piece
      bytes += piece.length
      onProgress?.(bytes)
    }
  }
  try {
    await pipeline(
      createReadStream(file.path, { highWaterMark: COPY_PIECE_BYTES }),
      counted,
      createWriteStream(partial, { flags: 'wx', mode: FILE_MODE, flush: true }),
      { signal },
    )
    await rename(partial, place)
  } catch (error) {
    await rm(partial, { force: true })
    throw error
  }
}

async function isKept({ bytes, sha256 }: FinishedFile, place: string): Promise<boolean> {
  try {
    if ((await stat(place)).size !== bytes) return false
    const hash = createHash('sha256')
    await pipeline(createReadStream(place), hash)
    return hash.digest('hex') === sha256
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

async function openKept(path: string, { exportId, name }: FilePlace) {
  try {
    return await open(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw new CapfleetError('unknown-export', `the export ${exportId} has no file ${name}`)
  }
}
