import { addAbortListener } from 'node:events'
import { Compressor } from '../../../native/compressor.ts'
import { FairLimit } from '../../shared/base/fair-limit.ts'
import type { Compression } from '../../shared/query/query-values.ts'

/**
 * Merges of a process that may be compressed in the usual groups: what each takes while its client takes nothing, up to
 * 35 MiB with gzip and 78 MiB with zstd where there are many cores, has no other bound. Those beyond have small groups,
 * of which one at a time is compressed: 5 and 6 MiB, and with zstd files that are a fifth larger, or three tenths.
 */
const USUAL_GROUPS = new FairLimit({ places: 8 })

/**
 * Compresses `chunks` as `compression` says ("none" passes them on), as an appliance compresses its
 * downloads: in gzip members of 1 MiB or zstd frames of 8 MiB each (1 MiB, where many are at it), or less when the reader has waited
 * for 100 ms. A chunk is copied before the next is asked for; what comes out is valid until the second
 * next() after it. When `chunks` fail, what came before goes out before the failure does; when `signal`
 * is aborted, all work ends at once, for a group of zstd_ultra takes seconds. Ending the generator early
 * ends `chunks` too, when they have given what they were asked for.
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

/** Fails as the chunks do, or with an AbortError when the compressor is closed before their end. */
async function feed(chunks: AsyncIterable<Uint8Array>, compressor: Compressor): Promise<void> {
  try {
    for await (const chunk of chunks) await compressor.write(chunk)
  } finally {
    compressor.end()
  }
}
