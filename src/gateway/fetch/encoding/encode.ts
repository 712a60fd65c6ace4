import { addAbortListener } from 'node:events'
import { Compressor } from '../../../../native/compressor.ts'
import { FairLimit } from '../../../shared/base/fair-limit.ts'
import type { Compression } from '../../../shared/query/download/query-values.ts'

/**
 * Number of merges per process that may be compressed in groups of the usual size. While its client reads nothing,
 * each takes up to 35 MiB with gzip and 78 MiB with zstd on machines with many cores, and nothing else limits that.
 * Further merges use small groups, one compressed at a time: 5 and 6 MiB, at the cost of zstd files that are 20 or 30
 * % larger.
 */
const USUAL_GROUPS = new FairLimit({ places: 8 })

/**
 * Compresses `chunks` as `compression` says ("none" passes them on), as an appliance compresses its downloads: in gzip
 * members of 1 MiB or zstd frames of 8 MiB (1 MiB if many merges are active), or less if the reader has waited for 100
 * ms. A chunk is copied before the next is requested; output is valid until the second next() after it. If `chunks`
 * fail, the output before the failure is still delivered. If `signal` aborts, all work ends at once, because a group
 * of zstd_ultra takes seconds. Ending the generator early ends `chunks` too, once they have delivered the chunk that
 * was requested.
 */
export async function* encode(
  chunks: AsyncIterable<Uint8Array>,
  compression: Compression,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  if (compression === 'none') {
    yield* chunks
    return
  }
  using place = USUAL_GROUPS.tryAcquire()
  using compressor = new Compressor(compression, { hasSmallGroups: place === undefined })
  const feeding = feed(chunks, compressor)
  const fed = feeding.catch(() => undefined)
  using _stop = signal && addAbortListener(signal, () => compressor.close())
  try {
    signal?.throwIfAborted()
    for (let part = await compressor.next(); part !== undefined; part = await compressor.next()) yield part
    await feeding
  } catch (error) {
    throw signal?.aborted === true ? signal.reason : error
  } finally {
    compressor.close()
    await fed
  }
}

/** Fails with the error of the chunks, or with an AbortError if the compressor is closed before their end. */
async function feed(chunks: AsyncIterable<Uint8Array>, compressor: Compressor): Promise<void> {
  try {
    for await (const chunk of chunks) await compressor.write(chunk)
  } finally {
    compressor.end()
  }
}
