/** Removal of old files of the audit: those of all chains that share the folder. */
import { stat, unlink } from 'node:fs/promises'
import { lockFile } from '../../shared/base/file-lock.ts'
import { type AuditFile, listChains, lockPath } from './audit-files.ts'

/**
 * Removes files whose last line was written before `beforeMs`. The two newest files of a chain say where it goes on: they
 * stay as long as somebody may write it, and go with their lock when nobody has for that long. Processes whose names are
 * used once (pods) would otherwise leave their files for ever. Fails as the file system does.
 */
export async function removeOldFiles(folder: string, beforeMs: number): Promise<void> {
  for (const [chain, files] of await listChains(folder)) {
    await removeWhileOld(files.slice(0, -2), beforeMs)
    if (await isOld(files.at(-1), beforeMs)) await removeLeft(folder, chain, beforeMs)
  }
}

/**
 * Removes the oldest files while all have more than `keepBytes`, save the two newest of each chain, by any clock: it is bytes
 * that are too many, not years. Fails as the file system does.
 */
export async function removeBeyond(folder: string, keepBytes: number): Promise<void> {
  const found = [...(await listChains(folder)).values()].flatMap((files) =>
    files.map((file, index) => ({ file, isKept: index >= files.length - 2 })),
  )
  // Another process may remove a file at this moment.
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

/** A chain that a living process has is locked, however long ago it wrote its last line. */
async function removeLeft(folder: string, chain: string, beforeMs: number): Promise<void> {
  const path = lockPath(folder, chain)
  // It was made when the chain began: a process that wrote and died while its clock was late leaves old files only.
  const made = await stat(path).catch(() => undefined)
  if (made !== undefined && made.mtimeMs > beforeMs) return
  const lock = await lockFile(path)
  if (lock === undefined) return
  // A process may have written it and ended since we looked.
  const files = (await listChains(folder)).get(chain) ?? []
  if (await isOld(files.at(-1), beforeMs)) {
    await removeWhileOld(files, beforeMs)
    await unlink(path)
  }
  lock[Symbol.dispose]()
}

/** The oldest comes first. */
async function removeWhileOld(files: readonly AuditFile[], beforeMs: number): Promise<void> {
  for (const file of files) {
    if (!(await isOld(file, beforeMs))) return
    // Another process may remove it at this moment.
    await unlink(file.path).catch(() => undefined)
  }
}

/** A file that is gone is not. */
async function isOld(file: AuditFile | undefined, beforeMs: number): Promise<boolean> {
  const written = file && (await stat(file.path).catch(() => undefined))
  return written !== undefined && written.mtimeMs <= beforeMs
}
