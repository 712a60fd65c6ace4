import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'

const DIGITS = 16

/**
 * Identity of the folder that holds a store: the same after a restart, a new address or a move of its disk, and
 * different for another store. "" if the file system does not record creation times. Fails like stat.
 */
export async function storeIdentity(store: string): Promise<string> {
  const { ino, birthtimeNs } = await stat(store, { bigint: true })
  if (birthtimeNs === 0n) return ''
  const digest = createHash('sha256').update(`${ino}.${birthtimeNs}`).digest('hex')
  return `store-${digest.slice(0, DIGITS)}`
}
