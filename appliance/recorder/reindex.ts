import { addSieves } from '../../native/stored-segments.ts'
import { CapfleetError } from '../../src/base/error.ts'
import type { Log } from '../../src/base/log.ts'
import type { ImportWatch } from '../link/import-request.ts'
import { CaptureCatalogue } from '../store/capture-catalogue.ts'
import { type StorePaths, segmentPath } from '../store/store-paths.ts'

/** What a reindex has found and done. */
export interface Reindexed {
  /** Finished segments of the store. */
  readonly segments: bigint
  /** Blocks that had no sieve and have one now. */
  readonly blocks: bigint
}

const NEVER = new AbortController().signal

/**
 * Gives each finished segment of the store the sieves that it lacks, one segment after the other and
 * behind all other work of the machine; those that are being written get theirs as they grow. What
 * was done stays done when it is ended before. Fails with store-full, store-unavailable,
 * store-corrupt, or the signal's reason.
 */
export async function reindexStore(
  { paths, log }: { readonly paths: StorePaths; readonly log: Log },
  { signal = NEVER, onProgress }: ImportWatch,
): Promise<Reindexed> {
  const catalogue = new CaptureCatalogue(paths, log)
  const found = (await catalogue.listFinished()).flatMap((capture) =>
    capture.streams.flatMap(({ port, segments }) =>
      segments.map((segment) => ({
        ...segment,
        path: segmentPath(catalogue.folderOf(capture), port, segment.number),
      })),
    ),
  )
  const totalInputBytes = found.reduce((sum, { bytes }) => sum + bytes, 0n)
  let [inputBytes, packets, blocks] = [0n, 0n, 0n]
  for (const segment of found) {
    blocks += await addSievesUnlessGone(segment.path, signal)
    inputBytes += segment.bytes
    packets += segment.packets
    onProgress?.({ inputBytes, totalInputBytes, packets })
  }
  return { segments: BigInt(found.length), blocks }
}

async function addSievesUnlessGone(path: string, signal: AbortSignal): Promise<bigint> {
  try {
    return await addSieves(path, signal)
  } catch (error) {
    if (error instanceof CapfleetError && error.code === 'aged-out') return 0n
    throw error
  }
}
