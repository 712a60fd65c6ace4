/** Folders of captures that are being recorded: made before the first packet, closed at the end. */
import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { syncPath, syncTree } from '../../src/base/durable-files.ts'
import { type CaptureRecord, captureRecordSchema, toJson } from '../store/capture-record.ts'
import { CAPTURE_RECORD_NAME, HIDDEN_PREFIX, type StorePaths } from '../store/store-paths.ts'

/** Makes the capture appear, whole, with its record. False when the name is taken. */
export async function makeCaptureFolder(paths: StorePaths, record: CaptureRecord): Promise<boolean> {
  const hidden = hiddenPath(paths)
  await mkdir(hidden, { mode: 0o750 })
  try {
    await writeNew(join(hidden, CAPTURE_RECORD_NAME), record)
    await syncTree(hidden)
    // A folder replaces no folder that has files; every capture has its record.
    await rename(hidden, join(paths.captures, record.name))
  } catch (error) {
    await rm(hidden, { recursive: true, force: true })
    if (isNameTaken(error)) return false
    throw error
  }
  await syncPath(paths.captures)
  return true
}

/**
 * Replaces the record of an existing capture by what `change` makes of it. The new one comes out of
 * the folder of all captures, whose time stamp tells readers that something changed.
 * REQUIRES: no two calls for a capture at the same time.
 */
export async function changeCaptureRecord(
  paths: StorePaths,
  name: string,
  change: (record: CaptureRecord) => CaptureRecord,
): Promise<void> {
  const folder = join(paths.captures, name)
  const text = await readFile(join(folder, CAPTURE_RECORD_NAME), 'utf8')
  const record = change(captureRecordSchema.parse(JSON.parse(text)))
  const hidden = hiddenPath(paths)
  try {
    await writeNew(hidden, record)
    await syncPath(hidden)
    await rename(hidden, join(folder, CAPTURE_RECORD_NAME))
  } catch (error) {
    await rm(hidden, { force: true })
    throw error
  }
  await syncPath(folder)
  await syncPath(paths.captures)
}

/** Records in state "active", newest first: what a recorder that ended before it could stop them left. */
export async function activeRecords(paths: StorePaths): Promise<readonly CaptureRecord[]> {
  const names = (await readdir(paths.captures)).filter((name) => !name.startsWith(HIDDEN_PREFIX))
  const active: CaptureRecord[] = []
  for (const name of names) {
    const record = await readCaptureRecord(paths, name)
    if (record?.state === 'active' && record.name === name) active.push(record)
  }
  return active.toSorted((a, b) => (a.startNs > b.startNs ? -1 : 1))
}

/** undefined when there is no such capture, or what is there is no record: the catalogue tells of that. */
export async function readCaptureRecord(paths: StorePaths, name: string): Promise<CaptureRecord | undefined> {
  const path = join(paths.captures, name, CAPTURE_RECORD_NAME)
  try {
    return captureRecordSchema.parse(JSON.parse(await readFile(path, 'utf8')))
  } catch {
    return undefined
  }
}

async function writeNew(path: string, record: CaptureRecord): Promise<void> {
  await using file = await open(path, 'wx', 0o640)
  await file.writeFile(`${toJson(record)}\n`)
}

function hiddenPath(paths: StorePaths): string {
  return join(paths.captures, `${HIDDEN_PREFIX}recording-${randomUUID()}`)
}

function isNameTaken(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOTEMPTY' || code === 'EEXIST' || code === 'ENOTDIR'
}
