import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import { constants, gzip, type ZlibOptions, type ZstdOptions, zstdCompress } from 'node:zlib'
import { type Compression, encodingOf } from '../query/query-values.ts'

const gzipSlice = promisify<Uint8Array, ZlibOptions, Buffer>(gzip)
const zstdSlice = promisify<Uint8Array, ZstdOptions, Buffer>(zstdCompress)

/** Each slice becomes a gzip member or a zstd frame of its own. */
const SLICE_BYTES = 1_048_576
/** Readers with little memory (8 MiB windows) must be able to decode what we send. */
const ZSTD_WINDOW_LOG_MAX = 23
const ZSTD_LEVELS = { zstd: 3, zstd_fast: 1, zstd_ultra: 19 } as const

/**
 * Compresses `chunks` as `compression` says ("none" passes them on): slice by slice, as many at a
 * time on the thread pool as there are cores, in order. Slices are cut by size and never by time, so
 * the same bytes give the same file however slowly they come: a stream that broke off and went on is
 * not to be told from one that did not. What is compressed is held back until its slice is full.
 * A chunk is copied before the next is asked for. Ending the generator early ends `chunks` too.
 */
export async function* encode(
  chunks: AsyncIterable<Uint8Array>,
  compression: Compression,
): AsyncGenerator<Uint8Array> {
  if (compression === 'none') {
    yield* chunks
    return
  }
  const compress = compressorOf(compression)
  const running: Promise<Buffer>[] = []
  const start = (slice: Uint8Array) => {
    const work = compress(slice)
    // Whoever waits for it hears of a failure; nobody may wait any more when the input has failed.
    work.catch(() => undefined)
    running.push(work)
  }
  for await (const slice of slices(chunks)) {
    start(slice)
    if (running.length >= availableParallelism()) yield (await running.shift()) as Buffer
  }
  for (const work of running) yield await work
}

/** All bytes in slices of one size, the last one shorter; one, empty, when there are none. */
async function* slices(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let slice = Buffer.allocUnsafeSlow(SLICE_BYTES)
  let bytes = 0
  let isFirst = true
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.byteLength; ) {
      const part = chunk.subarray(at, at + SLICE_BYTES - bytes)
      slice.set(part, bytes)
      bytes += part.byteLength
      at += part.byteLength
      if (bytes < SLICE_BYTES) continue
      yield slice
      isFirst = false
      slice = Buffer.allocUnsafeSlow(SLICE_BYTES)
      bytes = 0
    }
  }
  if (bytes > 0 || isFirst) yield slice.subarray(0, bytes)
}

function compressorOf(compression: Exclude<Compression, 'none'>): (slice: Uint8Array) => Promise<Buffer> {
  if (encodingOf(compression) === 'gzip') {
    const options = { level: gzipLevel(compression) }
    return (slice) => gzipSlice(slice, options)
  }
  const options = {
    params: {
      [constants.ZSTD_c_compressionLevel]: ZSTD_LEVELS[compression as keyof typeof ZSTD_LEVELS],
      [constants.ZSTD_c_windowLog]: windowLogFor(compression),
      [constants.ZSTD_c_checksumFlag]: 1,
    },
  }
  // Some readers want to know the size of a frame before they decode it.
  return (slice) => zstdSlice(slice, { ...options, pledgedSrcSize: slice.byteLength })
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
