/**
 * A disk that can lose its power: a file behind a loop device. A cut copies atomically what the disk has received so
 * far, without what is only in the cache of the mounted file system. The file is on a file system that acts as the
 * disk's cache and is itself backed by a file, the medium: a cut that copies the medium also loses what the disk was
 * not told to flush. Needs root.
 */
import { execFile } from 'node:child_process'
import { constants, existsSync } from 'node:fs'
import { copyFile, mkdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { eventually } from '../eventually.ts'
import { tempFolder } from '../temp-folder.ts'

const run = promisify(execFile)

/** Skip reason for tests, or false if this process can create disks. */
export const WITHOUT_DISKS: string | false =
  process.getuid?.() === 0 && existsSync('/dev/loop-control') ? false : 'needs root: loop devices'

export type FileSystem = 'ext4' | 'xfs'

interface FileSystemCommands {
  readonly make: readonly [string, ...string[]]
  /** Options for mounting the copy while the original is mounted. */
  readonly mountOptions: string
}

const COMMANDS: Readonly<Record<FileSystem, FileSystemCommands>> = {
  ext4: { make: ['mkfs.ext4', '-qF'], mountOptions: 'loop' },
  // XFS refuses to mount a second one with the same UUID. It can copy files atomically and fast (reflink).
  xfs: { make: ['mkfs.xfs', '-q', '-m', 'reflink=1'], mountOptions: 'loop,nouuid' },
}
/** All files are sparse. */
const DISK_BYTES = '4G'
const CACHE_BYTES = '8G'
const MEDIUM_BYTES = '16G'

export interface Mounted extends AsyncDisposable {
  readonly path: string
}

export class PowerLossDisk implements AsyncDisposable {
  /** Where the file system is mounted. */
  readonly path: string
  readonly #kind: FileSystem
  readonly #folder: string
  readonly #owned: AsyncDisposableStack

  private constructor(kind: FileSystem, folder: string, owned: AsyncDisposableStack) {
    this.#kind = kind
    this.#folder = folder
    this.#owned = owned
    this.path = join(folder, 'disk')
  }

  static async make(kind: FileSystem): Promise<PowerLossDisk> {
    await using owned = new AsyncDisposableStack()
    const folder = owned.use(await tempFolder()).path
    owned.use(await mount(join(folder, 'memory'), ['-t', 'tmpfs', 'tmpfs']))
    const layer = async (
      image: string,
      name: string,
      layerKind: FileSystem,
      bytes: string,
    ): Promise<void> => {
      const path = join(folder, image)
      await run('truncate', ['-s', bytes, path])
      const [command, ...args] = COMMANDS[layerKind].make
      await run(command, [...args, path])
      owned.use(await mount(join(folder, name), ['-o', 'loop', path]))
    }
    await layer('memory/medium', 'medium', 'xfs', MEDIUM_BYTES)
    await layer('medium/cache', 'cache', 'xfs', CACHE_BYTES)
    await layer('cache/disk', 'disk', kind, DISK_BYTES)
    return new PowerLossDisk(kind, folder, owned.move())
  }

  /** Simulates a power failure and restart, on a copy: its log is replayed, and it is mounted until dispose. */
  async cutPower({ losesCache }: { readonly losesCache: boolean }): Promise<Mounted> {
    await using owned = new AsyncDisposableStack()
    let disk = join(this.#folder, 'cache/disk')
    if (losesCache) {
      const cache = owned.use(await this.#mountCopy(join(this.#folder, 'medium/cache'), 'xfs'))
      disk = join(cache.path, 'disk')
    }
    const { path } = owned.use(await this.#mountCopy(disk, this.#kind))
    const all = owned.move()
    return { path, [Symbol.asyncDispose]: () => all.disposeAsync() }
  }

  /** Flushes everything written so far to the disk. */
  async sync(): Promise<void> {
    await run('sync', ['--file-system', this.path])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync()
  }

  async #mountCopy(image: string, kind: FileSystem): Promise<Mounted> {
    await using owned = new AsyncDisposableStack()
    const copy = `${image}-copy`
    owned.defer(() => rm(copy, { force: true }))
    await copyFile(image, copy, constants.COPYFILE_FICLONE_FORCE)
    const path = join(this.#folder, `${basename(image)}-copy`)
    owned.use(await mount(path, ['-o', COMMANDS[kind].mountOptions, copy]))
    const all = owned.move()
    return { path, [Symbol.asyncDispose]: () => all.disposeAsync() }
  }
}

/** A process that was just killed may still hold it, through the mounts of its namespace. */

async function mount(path: string, args: readonly string[]): Promise<Mounted> {
  await mkdir(path, { recursive: true })
  await run('mount', [...args, path])
  const umount = (): Promise<boolean> =>
    run('umount', [path]).then(
      () => true,
      () => false,
    )
  const message = `${path} is not in use any more`
  return { path, [Symbol.asyncDispose]: () => eventually(umount, { message }) }
}
