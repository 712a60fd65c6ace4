/** Makes files and names survive a power cut. */
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** Syncs one file, or the names in one folder. */
export async function syncPath(path: string): Promise<void> {
  await using handle = await open(path, 'r')
  await handle.sync()
}

/** Syncs a folder and everything in it, innermost first. */
export async function syncTree(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    await (entry.isDirectory() ? syncTree(path) : syncPath(path))
  }
  await syncPath(folder)
}
