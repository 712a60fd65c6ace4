import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { CapfleetError } from '../../src/shared/base/error.ts'

const DIGITS = 16

/**
 * Identity of the folder that holds a store: the same after a restart, a new address or a move of its disk, and
 * different for another store. "" if the file system does not record creation times. Fails with store-unavailable.
 */
export async function storeIdentity(store: string): Promise<string> {
  const { ino, birthtimeNs } = await stat(store, { bigint: true }).catch((cause: NodeJS.ErrnoException) => {
    const problem =
      cause.code === 'ENOENT'
        ? `there is no store at ${store}; start the recorder, which creates it, or correct "store"`
        : `the store cannot be read: ${cause.message}`
    throw new CapfleetError('store-unavailable', problem, { cause })
  })
  if (birthtimeNs === 0n) return ''
  const digest = createHash('sha256').update(`${ino}.${birthtimeNs}`).digest('hex')
  return `store-${digest.slice(0, DIGITS)}`
}
