import { addSieves, measureFinishedSegment, repairAddresses } from '../../native/stored-segments.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import type { ImportWatch } from '../link/import-request.ts'
import { sideBytesOf } from '../store/segments-on-disk.ts'
import { entriesOf, pathOf } from '../store/stored-capture.ts'
import type { StoreWriter } from './store-writer.ts'

/** The result of a reindex. */
export interface Reindexed {
  /** Finished segments of the store. */
  readonly segments: bigint
  /** Blocks that lacked a sieve and have one now. */
  readonly blocks: bigint
  /** Segments whose addresses were not in the tables and are now. */
  readonly newInTables: bigint
  /** Why segments were left unchanged: each message names its segment. */
  readonly damages: readonly string[]
}

const NEVER = new AbortController().signal

/**
 * Adds the missing sieves and addresses of each finished segment of the store, one segment after another and at the
 * lowest priority; segments being written get theirs as they grow. Completed work stays if it is ended early. Only one
 * may run on a store. It reserves no space, because sieves are less than a hundredth of the packets: retention compensates
 * afterwards. Fails with store-full, store-unavailable, or the signal's reason.
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
  let [inputBytes, packets, blocks, newInTables] = [0n, 0n, 0n, 0n]
  const damages: string[] = []
  for (const { name, folder, segment } of found) {
    const path = pathOf(folder, segment)
    const made = await whereReadable(() => addSieves(path, signal), { otherwise: 0n, damages })
    // Logs of earlier versions have no checksum, without which no reader uses a table of addresses.
    const checksum =
      segment.checksum ||
      (await whereReadable(async () => (await measureFinishedSegment(path)).checksum, {
        otherwise: 0,
        damages: [],
      }))
    if (made > 0n || checksum !== segment.checksum) {
      await writer.correctSegment(name, { ...segment, sideBytes: await sideBytesOf(path), checksum }, [])
    }
    blocks += made
    const isNew = await whereReadable(() => repairAddresses(path, signal), { otherwise: false, damages: [] })
    if (isNew) newInTables += 1n
    inputBytes += segment.bytes
    packets += segment.packets
    onProgress?.({ inputBytes, totalInputBytes, packets })
  }
  return { segments: BigInt(found.length), blocks, newInTables, damages }
}

/** A problem of this segment alone does not affect the others. */
async function whereReadable<Result>(
  work: () => Promise<Result>,
  { otherwise, damages }: { readonly otherwise: Result; readonly damages: string[] },
): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof CapfleetError)) throw error
    if (error.code === 'store-corrupt') damages.push(error.message)
    else if (error.code !== 'aged-out') throw error
    return otherwise
  }
}
