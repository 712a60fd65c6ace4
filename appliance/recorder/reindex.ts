import { addSieves } from '../../native/stored-segments.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import type { ImportWatch } from '../link/import-request.ts'
import { sideBytesOf } from '../store/segments-on-disk.ts'
import { entriesOf, pathOf } from '../store/stored-capture.ts'
import type { StoreWriter } from './store-writer.ts'

/** What a reindex has found and done. */
export interface Reindexed {
  /** Finished segments of the store. */
  readonly segments: bigint
  /** Blocks that had no sieve and have one now. */
  readonly blocks: bigint
  /** Why segments were left as they are: each message names its segment. */
  readonly damages: readonly string[]
}

const NEVER = new AbortController().signal

/**
 * Gives each finished segment of the store the sieves that it lacks, one segment after the other and
 * behind all other work of the machine; those that are being written get theirs as they grow. What
 * was done stays done when it is ended before. One at a time may work on a store. It asks for no
 * room, because sieves are less than a hundredth of the packets: retention makes up for them behind
 * it. Fails with store-full, store-unavailable, or the signal's reason.
 */
export async function reindexStore(
  writer: StoreWriter,
  { signal = NEVER, onProgress }: ImportWatch,
): Promise<Reindexed> {
  await writer.load()
  const found = [...writer.captures.values()].flatMap(({ record: { name }, folder, table }) =>
    table.ports.flatMap((port) => Array.from(entriesOf(port), (segment) => ({ name, folder, segment }))),
  )
  const totalInputBytes = found.reduce((sum, { segment }) => sum + segment.bytes, 0n)
  let [inputBytes, packets, blocks] = [0n, 0n, 0n]
  const damages: string[] = []
  for (const { name, folder, segment } of found) {
    const path = pathOf(folder, segment)
    const made = await addSievesWherePossible(path, { signal, damages })
    if (made > 0n) await writer.correctSegment(name, { ...segment, sideBytes: await sideBytesOf(path) }, [])
    blocks += made
    inputBytes += segment.bytes
    packets += segment.packets
    onProgress?.({ inputBytes, totalInputBytes, packets })
  }
  return { segments: BigInt(found.length), blocks, damages }
}

/** What is wrong with this segment alone keeps the others from nothing. */
async function addSievesWherePossible(
  path: string,
  { signal, damages }: { readonly signal: AbortSignal; readonly damages: string[] },
): Promise<bigint> {
  try {
    return await addSieves(path, signal)
  } catch (error) {
    if (!(error instanceof CapfleetError)) throw error
    if (error.code === 'store-corrupt') damages.push(error.message)
    else if (error.code !== 'aged-out') throw error
    return 0n
  }
}
