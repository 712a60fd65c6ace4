/** Checks that every target makes before it accepts a file. */
import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { CapfleetError } from '../../../shared/base/error.ts'
import type { FilePlace, FinishedFile } from './export-target.ts'

export const EXPORT_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
/** No slash, no hidden name, nothing that would need escaping in a path, a header or an address. */
const FILE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,239}$/

/** Paths and keys are built only from these: anything that is not an id of ours is a bug, not bad input. */
export function assertExportId(exportId: string): void {
  assert.match(exportId, EXPORT_ID)
}

export function assertPlace({ exportId, name }: FilePlace): void {
  assertExportId(exportId)
  assert.match(name, FILE_NAME)
}

/** Whether the file is still where it was written; an earlier attempt to publish it may have moved it. */
export async function isStillThere({ path, name, bytes }: FinishedFile): Promise<boolean> {
  let size: number
  try {
    size = (await stat(path)).size
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
  if (size === bytes) return true
  throw new CapfleetError('internal-error', `the finished file ${name} has ${size} bytes instead of ${bytes}`)
}

/** The error if the file is neither where it was written nor published already. */
export function fileIsLost({ name }: FilePlace): CapfleetError {
  return new CapfleetError(
    'export-target-unavailable',
    `the finished file ${name} disappeared before it was stored; check what removes files from the work folder`,
  )
}
