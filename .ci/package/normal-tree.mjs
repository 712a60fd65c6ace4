import { chmodSync, lstatSync, lutimesSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Sets the modes and times of a folder and all that it contains: the same whatever umask and time they are from. */
export function normalizeTree(folder, epochS) {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isSymbolicLink()) {
      const isProgram = entry.isDirectory() || (lstatSync(path).mode & 0o100) !== 0
      chmodSync(path, isProgram ? 0o755 : 0o644)
    }
    lutimesSync(path, epochS, epochS)
  }
  chmodSync(folder, 0o755)
  lutimesSync(folder, epochS, epochS)
}
