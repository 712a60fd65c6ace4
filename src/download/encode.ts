import { Compressor } from '../../native/compressor.ts'
import type { Compression } from '../query/query-values.ts'

/**
 * Compresses `chunks` as `compression` says ("none" passes them on), as an appliance compresses its
 * downloads: in gzip members of 1 MiB or zstd frames of 4 MiB each, or less when the reader has waited
 * for 100 ms. A chunk is copied before the next is asked for; what comes out is valid until the second
 * next() after it. When `chunks` fail, what came before goes out before the failure does. Ending the
 * generator early ends `chunks` too, when they have given what they were asked for.
 */
export async function* encode(
  chunks: AsyncIterable<Uint8Array>,
  compression: Compression,
): AsyncGenerator<Uint8Array> {
  if (compression === 'none') {
    yield* chunks
    return
  }
  using compressor = new Compressor(compression)
  const feeding = feed(chunks, compressor)
  const fed = feeding.catch(() => undefined)
  try {
    for (let part = await compressor.next(); part !== undefined; part = await compressor.next()) yield part
    await feeding
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
