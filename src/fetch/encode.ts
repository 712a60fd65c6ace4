import { Compressor } from '../../native/compressor.ts'
import { FairLimit } from '../base/fair-limit.ts'
import { type Compression, encodingOf } from '../query/query-values.ts'

/**
 * Merges of a process that may be compressed with zstd in large frames: what each takes while its client takes nothing,
 * 44 to 78 MiB, has no other bound. Those beyond have small frames, which make files a fifth larger, or three tenths.
 */
const LARGE_FRAMES = new FairLimit({ places: 8 })

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
  using place = encodingOf(compression) === 'zstd' ? LARGE_FRAMES.tryAcquire() : NO_PLACE
  using compressor = new Compressor(compression, { isSmall: place === undefined })
  const feeding = feed(chunks, compressor)
  const fed = feeding.catch(() => undefined)
  const stop = () => compressor.close()
  signal?.addEventListener('abort', stop, { once: true })
  try {
    signal?.throwIfAborted()
    for (let part = await compressor.next(); part !== undefined; part = await compressor.next()) yield part
    await feeding
  } catch (error) {
    throw signal?.aborted === true ? signal.reason : error
  } finally {
    signal?.removeEventListener('abort', stop)
    compressor.close()
    await fed
  }
}

/** Members of gzip are small. */
const NO_PLACE: Disposable = { [Symbol.dispose]: () => undefined }

/** Fails as the chunks do, or with an AbortError when the compressor is closed before their end. */
async function feed(chunks: AsyncIterable<Uint8Array>, compressor: Compressor): Promise<void> {
  try {
    for await (const chunk of chunks) await compressor.write(chunk)
  } finally {
    compressor.end()
  }
}
