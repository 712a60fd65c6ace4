/** Removes old audit files, across all chains that share the folder. */
import { stat, unlink } from 'node:fs/promises'
import { lockFile } from '../../shared/base/file-lock.ts'
import { type AuditFile, listChains, lockPath } from './audit-files.ts'

/**
 * Removes files whose last line was written before `beforeMs`. The two newest files of a chain are needed to
 * continue it, so they stay while some process may still write to the chain, and are removed together with its
 * lock once it has been idle for that long. Otherwise processes whose names are used only once (pods) would leave
 * their files forever. Fails with the errors of the file system.
 */
export async function removeOldFiles(folder: string, beforeMs: number): Promise<void> {
  for (const [chain, files] of await listChains(folder)) {
    await removeWhileOld(files.slice(0, -2), beforeMs)
    if (await isOld(files.at(-1), beforeMs)) await removeLeft(folder, chain, beforeMs)
  }
}

/**
 * Removes the oldest files while all files together take more than `keepBytes`, except the two newest of each
 * chain. Ignores the clock: the limit is on bytes, not on age. Fails with the errors of the file system.
 */
export async function removeBeyond(folder: string, keepBytes: number): Promise<void> {
  const found = [...(await listChains(folder)).values()].flatMap((files) =>
    files.map((file, index) => ({ file, isKept: index >= files.length - 2 })),
  )
  // Another process may remove a file concurrently.
  const sized = await Promise.all(
    found.map(async (entry) => ({ ...entry, written: await stat(entry.file.path).catch(() => undefined) })),
  )
  const removable = sized.filter(({ isKept }) => !isKept)
  removable.sort((a, b) => (a.written?.mtimeMs ?? 0) - (b.written?.mtimeMs ?? 0))
  let bytes = sized.reduce((sum, { written }) => sum + (written?.size ?? 0), 0)
  for (const { file, written } of removable) {
    if (bytes <= keepBytes) return
    await unlink(file.path).catch(() => undefined)
    bytes -= written?.size ?? 0
  }
}

/** The chain of a living process is locked, however old its last line is. */
async function removeLeft(folder: string, chain: string, beforeMs: number): Promise<void> {
  const path = lockPath(folder, chain)
  // The lock was created when the chain began. A process that ran and died with its clock behind leaves only old files.
  const made = await stat(path).catch(() => undefined)
  if (made !== undefined && made.mtimeMs > beforeMs) return
  const lock = await lockFile(path)
  if (lock === undefined) return
  // Another process may have written to the chain and ended since we checked.
  const files = (await listChains(folder)).get(chain) ?? []
  if (await isOld(files.at(-1), beforeMs)) {
    await removeWhileOld(files, beforeMs)
    await unlink(path)
  }
  lock[Symbol.dispose]()
}

/** `files` starts with the oldest. */
async function removeWhileOld(files: readonly AuditFile[], beforeMs: number): Promise<void> {
  for (const file of files) {
    if (!(await isOld(file, beforeMs))) return
    // Another process may remove it concurrently.
    await unlink(file.path).catch(() => undefined)
  }
}

/** Returns false for a file that no longer exists. */
async function isOld(file: AuditFile | undefined, beforeMs: number): Promise<boolean> {
  const written = file && (await stat(file.path).catch(() => undefined))
  return written !== undefined && written.mtimeMs <= beforeMs
}
