/** The format of a store, in its file store.json. */
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { syncPath } from '../../../src/shared/base/durable-files.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'
import { readCapture } from '../../store/read-capture.ts'
import type { StorePaths } from '../../store/store-paths.ts'
import { captureNames } from './capture-folder.ts'

const STORE_FORMAT = JSON.stringify({ format: 2 })
/** A store of this format is upgraded, capture by capture. */
const OLD_FORMAT = JSON.stringify({ format: 1 })

/** The folder exists before store.json does: a store without it has lost it, or it is not mounted. */
export async function refuseWithoutCaptures({ root, format, captures }: StorePaths): Promise<void> {
  const text = (await readFile(format, 'utf8').catch(() => '')).trim()
  if ((text !== STORE_FORMAT && text !== OLD_FORMAT) || (await exists(captures))) return
  throw new CapfleetError(
    'store-unavailable',
    `the store ${root} has lost its folder captures: mount or restore it; to start without captures, create an empty folder`,
  )
}

/** Makes the store one of today's format. Fails with store-unavailable if it is none that this capfleet knows. */
export async function checkFormat(paths: StorePaths): Promise<void> {
  const text = await readUnlessNew(paths.format)
  if (text?.trim() === STORE_FORMAT) return
  // A power failure while the store was created may have left the file empty.
  const isNew = text === undefined || (text.trim() === '' && (await captureNames(paths)).length === 0)
  const isKnown = isNew || text?.trim() === OLD_FORMAT
  if (!isKnown && !(await hasCapturesOfToday(paths))) {
    throw new CapfleetError(
      'store-unavailable',
      `${paths.format} does not contain ${STORE_FORMAT}: this is not a store, or is one of a newer capfleet`,
    )
  }
  // Before anything is written that an older capfleet would take for damage. In place, because it is as long as the
  // old one.
  await writeFile(paths.format, `${STORE_FORMAT}\n`, { flag: text === undefined ? 'w' : 'r+' })
  await syncPath(paths.format)
  await syncPath(paths.root)
}

/** Whether store.json is merely damaged: captures of a newer capfleet would not be readable. */
async function hasCapturesOfToday(paths: StorePaths): Promise<boolean> {
  for (const name of (await captureNames(paths)).slice(0, FORMAT_TRIES)) {
    const read = await readCapture(join(paths.captures, name), name, { isWritten: false }).catch(
      () => undefined,
    )
    if (read !== undefined && read.revision + read.table.segments > 0) return true
  }
  return false
}

/** Number of captures that are tried if store.json is damaged. */
const FORMAT_TRIES = 16

/** Returns undefined for a store that is being created; an unreadable format is no reason to write a new one. */
async function readUnlessNew(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new CapfleetError('store-unavailable', `cannot read the store: ${String(error)}`, { cause: error })
  }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}
