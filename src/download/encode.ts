import { availableParallelism } from 'node:os'
import { promisify } from 'node:util'
import { constants, gzip, type ZlibOptions, type ZstdOptions, zstdCompress } from 'node:zlib'
import { BufferPool } from '../base/buffer-pool.ts'
import { type Compression, encodingOf } from '../query/query-values.ts'

const gzipSlice = promisify<Uint8Array, ZlibOptions, Buffer>(gzip)
const zstdSlice = promisify<Uint8Array, ZstdOptions, Buffer>(zstdCompress)

/** Each slice becomes a gzip member or a zstd frame of its own. */
const SLICE_BYTES = 1_048_576
/** More are compressed at a time only while that many downloads wait for the thread pool. */
const KEPT_SLICES = 32
export const SLICES = new BufferPool(KEPT_SLICES * SLICE_BYTES)
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
  const start = ({ memory, bytes }: Slice) => {
    const work = compress(memory.subarray(0, bytes))
    // Whoever waits for it hears of a failure; nobody may wait any more when the input has failed.
    const giveBack = () => SLICES.give(memory)
    work.then(giveBack, giveBack)
    running.push(work)
  }
  for await (const slice of slices(chunks)) {
    start(slice)
    if (running.length >= availableParallelism()) yield (await running.shift()) as Buffer
  }
  for (const work of running) yield await work
}

interface Slice {
  /** Of SLICES. Whoever gets the slice gives it back. */
  readonly memory: Buffer
  readonly bytes: number
}

/** All bytes in slices of one size, the last one shorter; one, empty, when there are none. */
async function* slices(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Slice> {
  let memory: Buffer | undefined
  let bytes = 0
  let isFirst = true
  try {
    for await (const chunk of chunks) {
      for (let at = 0; at < chunk.byteLength; ) {
        memory ??= SLICES.take(SLICE_BYTES)
        const part = chunk.subarray(at, at + SLICE_BYTES - bytes)
        memory.set(part, bytes)
        bytes += part.byteLength
        at += part.byteLength
        if (bytes < SLICE_BYTES) continue
        const full = { memory, bytes }
        memory = undefined
        bytes = 0
        isFirst = false
        yield full
      }
    }
    if (bytes === 0 && !isFirst) return
    const last = { memory: memory ?? SLICES.take(SLICE_BYTES), bytes }
    memory = undefined
    yield last
  } finally {
    if (memory !== undefined) SLICES.give(memory)
  }
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
