/**
 * A disk of its own that can lose its power: a file in memory behind a loop device. A cut takes what the
 * device has been given by then, in one atomic copy; what is only in the cache of the mounted file
 * system is not in it. Needs root.
 */
import { execFile } from 'node:child_process'
import { constants, existsSync } from 'node:fs'
import { copyFile, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { tempFolder } from './temp-folder.ts'

const run = promisify(execFile)

/** A message for the `skip` of a test; false when this process may make disks. */
export const WITHOUT_DISKS: string | false =
  process.getuid?.() === 0 && existsSync('/dev/loop-control') ? false : 'needs root: loop devices'

export type FileSystem = 'ext4' | 'xfs'

interface FileSystemCommands {
  readonly make: readonly [string, ...string[]]
  /** Of the copy, beside the original. */
  readonly mountOptions: string
}

const COMMANDS: Readonly<Record<FileSystem, FileSystemCommands>> = {
  ext4: { make: ['mkfs.ext4', '-qF'], mountOptions: 'loop' },
  // XFS refuses a second one with the same identity.
  xfs: { make: ['mkfs.xfs', '-q'], mountOptions: 'loop,nouuid' },
}
/** Sparse. By default a store removes segments when less than 1 GiB is free. */
const DISK_BYTES = '4G'
const HOST_BYTES = '16G'

export interface MountedCopy extends AsyncDisposable {
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
    for (const name of ['memory', 'host', 'disk', 'copy']) await mkdir(join(folder, name))
    const mount = async (name: string, ...args: readonly string[]): Promise<void> => {
      await run('mount', [...args, join(folder, name)])
      owned.defer(async () => void (await run('umount', [join(folder, name)])))
    }
    await mount('memory', '-t', 'tmpfs', 'tmpfs')
    // XFS below the disk is what makes the copies: at one moment, and at once.
    const host = join(folder, 'memory/host')
    await run('truncate', ['-s', HOST_BYTES, host])
    await run('mkfs.xfs', ['-q', '-m', 'reflink=1', host])
    await mount('host', '-o', 'loop', host)
    const disk = join(folder, 'host/disk')
    await run('truncate', ['-s', DISK_BYTES, disk])
    const [command, ...args] = COMMANDS[kind].make
    await run(command, [...args, disk])
    await mount('disk', '-o', 'loop', disk)
    return new PowerLossDisk(kind, folder, owned.move())
  }

  /** The power fails and comes back, for a copy: its log is replayed, and it is mounted until dispose. */
  async cutPower(): Promise<MountedCopy> {
    const [image, path] = [join(this.#folder, 'host/copy'), join(this.#folder, 'copy')]
    await copyFile(join(this.#folder, 'host/disk'), image, constants.COPYFILE_FICLONE_FORCE)
    await run('mount', ['-o', COMMANDS[this.#kind].mountOptions, image, path])
    return {
      path,
      [Symbol.asyncDispose]: async () => {
        await run('umount', [path])
        await rm(image)
      },
    }
  }

  /** Everything so far is on the disk. */
  async sync(): Promise<void> {
    await run('sync', ['--file-system', this.path])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync()
  }
}
