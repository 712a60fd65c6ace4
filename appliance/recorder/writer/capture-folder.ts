/** Folders of captures: created completely under a hidden name, so that a capture appears by one rename. */
import { randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { syncPath, syncTree } from '../../../src/shared/base/durable-files.ts'
import type { CaptureRecord } from '../../store/capture-record.ts'
import { CAPTURE_RECORD_NAME, HIDDEN_PREFIX, type StorePaths } from '../../store/store-paths.ts'
import { HeldCapture } from './held-capture.ts'

/** Makes the capture appear complete with its record. Returns false if the name is taken. */
export async function makeCaptureFolder(paths: StorePaths, record: CaptureRecord): Promise<boolean> {
  const hidden = join(paths.captures, `${HIDDEN_PREFIX}recording-${randomUUID()}`)
  await mkdir(hidden, { mode: 0o750 })
  try {
    await HeldCapture.create(hidden, record)
    await syncTree(hidden)
    // A folder cannot replace one that contains files, and every capture has its record.
    await rename(hidden, join(paths.captures, record.name))
  } catch (error) {
    await rm(hidden, { recursive: true, force: true })
    if (isNameTaken(error)) return false
    throw error
  }
  await syncPath(paths.captures)
  return true
}

/** Names of all folders that may be captures. */
export async function captureNames(paths: StorePaths): Promise<readonly string[]> {
  return (await readdir(paths.captures)).filter((name) => !name.startsWith(HIDDEN_PREFIX))
}

/** Number of records that are read before yielding to other work. */
const READS_AT_ONCE = 64

/**
 * Names of captures that may be active: those whose record does not clearly say that they are closed. Searching the
 * text suffices to exclude thousands of closed ones, so a recorder accepts packets before it has read its store.
 */
export async function maybeActive(paths: StorePaths): Promise<readonly string[]> {
  const names = await captureNames(paths)
  const found: string[] = []
  for (let first = 0; first < names.length; first += READS_AT_ONCE) {
    const some = names.slice(first, first + READS_AT_ONCE)
    const texts = await Promise.all(
      some.map((name) => readFile(join(paths.captures, name, CAPTURE_RECORD_NAME), 'utf8').catch(() => '')),
    )
    found.push(...some.filter((_, index) => texts[index]?.includes('"state":"closed"') !== true))
    await nextTurn()
  }
  return found
}

/** Bytes of the files in a folder and below it. */
export async function sizeOfTree(folder: string): Promise<bigint> {
  let bytes = 0n
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name), { bigint: true })).size
  }
  return bytes
}

function isNameTaken(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOTEMPTY' || code === 'EEXIST' || code === 'ENOTDIR'
}
