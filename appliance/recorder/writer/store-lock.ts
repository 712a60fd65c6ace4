import { readFileSync } from 'node:fs'
import { CapfleetError } from '../../../src/shared/base/error.ts'
import { lockFile } from '../../../src/shared/base/file-lock.ts'
import type { StorePaths } from '../../store/store-paths.ts'

/**
 * Makes this process the store's only writer until disposed or the end of the process, however it ends. Fails with
 * store-unavailable if another process is the writer.
 */
export async function lockStore(paths: StorePaths): Promise<Disposable> {
  const lock = await lockFile(paths.lock).catch((cause: Error) => {
    throw new CapfleetError('store-unavailable', cause.message, { cause })
  })
  if (lock !== undefined) return lock
  const holder = readFileSync(paths.lock, 'utf8').trim()
  throw new CapfleetError(
    'store-unavailable',
    `another recorder (process ${holder || 'unknown'}) is writing to the store ${paths.root}; stop it first`,
  )
}
