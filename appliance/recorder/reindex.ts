import type { LogEntry } from '../../native/segment-entry.ts'
import { addSieves, measureFinishedSegment, repairAddresses } from '../../native/stored-segments.ts'
import { CapfleetError } from '../../src/shared/base/error.ts'
import type { ImportWatch } from '../link/import-request.ts'
import { sideBytesOf } from '../store/segments-on-disk.ts'
import { entriesOf, pathOf } from '../store/stored-capture.ts'
import type { HeldCapture } from './writer/held-capture.ts'
import type { StoreWriter } from './writer/store-writer.ts'

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
  const found = [...writer.captures.values()].flatMap((capture) =>
    capture.table.ports.flatMap((port) => Array.from(entriesOf(port), (segment) => ({ capture, segment }))),
  )
  const totalInputBytes = found.reduce((sum, { segment }) => sum + segment.bytes, 0n)
  let [inputBytes, packets, blocks, newInTables] = [0n, 0n, 0n, 0n]
  const damages: string[] = []
  for (const { capture, segment } of found) {
    const made = await capture.use((isDeleted) =>
      reindexSegment(writer, capture, segment, { signal: AbortSignal.any([signal, isDeleted]), damages }),
    )
    blocks += made?.blocks ?? 0n
    if (made?.isNewInTable === true) newInTables += 1n
    inputBytes += segment.bytes
    packets += segment.packets
    onProgress?.({ inputBytes, totalInputBytes, packets })
  }
  return { segments: BigInt(found.length), blocks, newInTables, damages }
}

async function reindexSegment(
  writer: StoreWriter,
  capture: HeldCapture,
  segment: LogEntry,
  { signal, damages }: { readonly signal: AbortSignal; readonly damages: string[] },
): Promise<{ readonly blocks: bigint; readonly isNewInTable: boolean }> {
  const path = pathOf(capture.folder, segment)
  const blocks = await whereReadable(() => addSieves(path, signal), { otherwise: 0n, damages })
  // Logs of earlier versions have no checksum, without which no reader uses a table of addresses.
  const measured =
    segment.checksum !== 0
      ? undefined
      : await whereReadable(() => measureFinishedSegment(path), { otherwise: undefined, damages: [] })
  if (blocks > 0n || measured !== undefined) {
    const sideBytes = await sideBytesOf(path)
    await writer.correctSegment(capture, segment, (now) => ({
      ...now,
      sideBytes,
      checksum: now.checksum || (measured?.checksum ?? 0),
    }))
  }
  const isNewInTable = await repairAddresses(path, signal).catch((error: unknown) => {
    if (!(error instanceof CapfleetError) || error.code === 'store-full') throw error
    // One table covers 64 segments. If it cannot be written, report that once and continue with the others.
    if (error.code === 'store-unavailable' && !damages.includes(error.message)) damages.push(error.message)
    return false
  })
  return { blocks, isNewInTable }
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
