import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { FinishedFile } from '../../../src/gateway/export/target/export-target.ts'

const PIECE_BYTES = 4_194_304

/** A finished file of random bytes in the folder. */
export async function madeFile(
  folder: string,
  bytes: number,
  place: { readonly exportId?: string; readonly name?: string } = {},
): Promise<FinishedFile> {
  const { exportId = randomUUID(), name = 'capture.pcap' } = place
  const path = join(folder, randomUUID())
  const hash = createHash('sha256')
  await using handle = await open(path, 'wx')
  for (let left = bytes; left > 0; left -= PIECE_BYTES) {
    const piece = randomBytes(Math.min(left, PIECE_BYTES))
    hash.update(piece)
    await handle.write(piece)
  }
  return { exportId, name, path, bytes, sha256: hash.digest('hex') }
}
