/** A separate small file system: full when a test fills it, whatever happens on the machine's disk. */
import { spawnSync } from 'node:child_process'
import { mkdir, open, statfs, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isFullDisk } from '../../../src/shared/base/full-disk.ts'
import { tempFolder } from '../temp-folder.ts'

export interface SmallDisk extends AsyncDisposable {
  /** Mount point. */
  readonly path: string
  /** A folder on another disk, for files that must not count. */
  readonly beside: string
}

export interface SmallDiskOptions {
  readonly bytes: number
  /** Default: "tmpfs", in memory. The others are files behind a loop device, without blocks reserved for root. */
  readonly kind?: 'tmpfs' | 'ext4' | 'xfs'
  /** The number of inodes, for ext4. */
  readonly inodes?: number
}

/** Returns the reason, a sentence, if nothing can be mounted: that requires root. */
export async function mountSmallDisk(options: number | SmallDiskOptions): Promise<SmallDisk | string> {
  const { bytes, kind = 'tmpfs', inodes } = typeof options === 'number' ? { bytes: options } : options
  await using parts = new AsyncDisposableStack()
  const { path: beside } = parts.use(await tempFolder())
  const [path, image] = [join(beside, 'mount'), join(beside, 'image')]
  await mkdir(path)
  const commands = {
    tmpfs: [['mount', '-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', path]],
    ext4: [
      ['truncate', '-s', String(bytes), image],
      ['mkfs.ext4', '-qF', '-m', '0', ...(inodes === undefined ? [] : ['-N', String(inodes)]), image],
      ['mount', '-o', 'loop', image, path],
    ],
    xfs: [
      ['truncate', '-s', String(bytes), image],
      ['mkfs.xfs', '-q', image],
      ['mount', '-o', 'loop', image, path],
    ],
  }
  for (const [command = '', ...args] of commands[kind]) {
    const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
    if (status === 0) continue
    if (error !== undefined || command !== 'mount') throw error ?? new Error(`${command}: ${stderr}`)
    const [said = ''] = stderr.split('\n')
    return `no ${kind} may be mounted here, which takes root and, but for tmpfs, loop devices: ${said}`
  }
  parts.defer(() => void spawnSync('umount', ['--lazy', path]))
  const owner = parts.move()
  return { path, beside, [Symbol.asyncDispose]: () => owner.disposeAsync() }
}

/** Takes all free bytes, or fewer if the disk is full earlier. */
export async function fillBytes(path: string): Promise<void> {
  await using file = await open(path, 'a')
  const { bavail, bsize } = await statfs(dirname(path))
  let left = bavail * bsize
  for (const size of [2 ** 20, 4_096, 1]) {
    const piece = Buffer.alloc(size, 'x')
    try {
      for (; left >= size; left -= size) await file.write(piece)
    } catch (error) {
      if (!isFullDisk(error)) throw error
    }
  }
}

/** Takes all free inodes with empty files in a new folder, or fewer if the disk runs out earlier. */
export async function fillFiles(folder: string): Promise<void> {
  const { ffree } = await statfs(dirname(folder))
  try {
    await mkdir(folder)
    for (let i = 1; i < ffree; i++) await writeFile(join(folder, String(i)), '')
  } catch (error) {
    if (!isFullDisk(error)) throw error
  }
}
