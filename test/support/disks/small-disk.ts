/** A small file system of its own, in memory: full when it shall be, whatever others do to the disk. */
import { spawnSync } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { tempFolder } from '../temp-folder.ts'

export interface SmallDisk extends AsyncDisposable {
  /** Where it is mounted. */
  readonly path: string
  /** A folder on another disk, for what shall not count. */
  readonly beside: string
}

/** Gives the reason where it cannot be made: that takes root. */
export async function mountSmallDisk(bytes: number): Promise<SmallDisk | string> {
  await using parts = new AsyncDisposableStack()
  const { path: beside } = parts.use(await tempFolder())
  const path = join(beside, 'mount')
  await mkdir(path)
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', path], {
    encoding: 'utf8',
  })
  if (mounted.status !== 0) return `needs root, to mount a small file system: ${mounted.stderr.trim()}`
  parts.defer(() => void spawnSync('umount', ['--lazy', path]))
  const owner = parts.move()
  return { path, beside, [Symbol.asyncDispose]: () => owner.disposeAsync() }
}
