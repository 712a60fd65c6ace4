import { pipeline } from 'node:stream/promises'
import { constants, createGzip, createZstdCompress } from 'node:zlib'
import { type Compression, encodingOf } from '../query/query-values.ts'

/** Readers with little memory (8 MiB windows) must be able to decode what we send. */
const ZSTD_WINDOW_LOG_MAX = 23
const ZSTD_LEVELS = { zstd: 3, zstd_fast: 1, zstd_ultra: 19 } as const
const CHUNK_BYTES = 256 * 1024

/**
 * Compresses `chunks` as `compression` says ("none" passes them on). The work is done on the thread
 * pool, with one chunk in and one out at a time. Ending the generator early ends `chunks` too.
 */
export async function* encode(
  chunks: AsyncIterable<Uint8Array>,
  compression: Compression,
): AsyncGenerator<Uint8Array> {
  if (compression === 'none') {
    yield* chunks
    return
  }
  const encoder = createEncoder(compression)
  const fed = pipeline(chunks, encoder)
  fed.catch(() => undefined)
  for await (const chunk of encoder as AsyncIterable<Buffer>) yield chunk
  await fed
}

function createEncoder(compression: Exclude<Compression, 'none'>) {
  if (encodingOf(compression) === 'gzip')
    return createGzip({ level: gzipLevel(compression), chunkSize: CHUNK_BYTES })
  return createZstdCompress({
    chunkSize: CHUNK_BYTES,
    params: {
      [constants.ZSTD_c_compressionLevel]: ZSTD_LEVELS[compression as keyof typeof ZSTD_LEVELS],
      [constants.ZSTD_c_windowLog]: windowLogFor(compression),
      [constants.ZSTD_c_checksumFlag]: 1,
    },
  })
}

/** 0 = as the level says; only the strongest would choose a larger one. */
function windowLogFor(compression: Compression): number {
  return compression === 'zstd_ultra' ? ZSTD_WINDOW_LOG_MAX : 0
}

/** API section 4.4.6. */
function gzipLevel(compression: Compression): number {
  if (compression === 'fast') return 1
  return compression === 'best' ? 9 : Number(compression)
}
