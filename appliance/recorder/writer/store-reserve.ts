import { randomBytes } from 'node:crypto'
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isFullDisk } from '../../../src/shared/base/full-disk.ts'

/**
 * Disk space and files that are released when the disk is full, so that there is room for the few small files that
 * must be written before anything can be removed: folder `reserve` of the store.
 */
export class StoreReserve {
  readonly #folder: string
  /** undefined: it is not known yet what an earlier recorder left. */
  #isWhole: boolean | undefined

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Does the work; if the disk is too full for it, releases the reserve and tries once more. */
  async use<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      if (!isFullDisk(error) || !(await this.#giveUp())) throw error
      return await work()
    }
  }

  /** Whether it is complete. Fails with the system's error. */
  async isWhole(): Promise<boolean> {
    this.#isWhole ??= await this.#isThere()
    return this.#isWhole
  }

  /** Creates what is missing. The caller has checked that there is room. Fails with the system's error. */
  async fill(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o750 })
    for (const name of NAMES) {
      const path = join(this.#folder, name)
      if ((await sizeOf(path)) !== FILE_BYTES) await writeWhole(path)
    }
    this.#isWhole = true
  }

  async #isThere(): Promise<boolean> {
    const sizes = await Promise.all(NAMES.map((name) => sizeOf(join(this.#folder, name))))
    return sizes.every((size) => size === FILE_BYTES)
  }

  /** Returns whether there was anything to release. */
  async #giveUp(): Promise<boolean> {
    const names = await readdir(this.#folder).catch(() => [])
    for (const name of names) await rm(join(this.#folder, name), { force: true })
    this.#isWhole = false
    return names.length > 0
  }
}

/** Several files, because each also frees an inode. */
const FILES = 8
const FILE_BYTES = 256 * 1024
/** Maximum space used by fill(), including the folder. */
export const RESERVE = { stored: 0n, disk: BigInt(FILES * FILE_BYTES), files: BigInt(FILES + 1) } as const
const NAMES = Array.from({ length: FILES }, (_, i) => String(i + 1))

/** Random bytes: a hole, or zeros on a compressing file system, would reserve nothing. */
async function writeWhole(path: string): Promise<void> {
  try {
    await using file = await open(path, 'w', 0o640)
    await file.writeFile(randomBytes(FILE_BYTES))
    await file.datasync()
  } catch (error) {
    await rm(path, { force: true })
    throw error
  }
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0
    throw error
  }
}
