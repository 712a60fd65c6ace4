import { constants, createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from 'node:zlib'
import type { CompressedEncoding } from '../../../shared/query/download/query-values.ts'
import { deviceProtocol } from '../../device/device-failure.ts'

/** Maximum decoder window: 128 MiB. */
const ZSTD_WINDOW_LOG_MAX = 27
const CHUNK_BYTES = 65_536
/** Packets compress to 200:1 only in short runs; a decompression bomb does so without end. */
const RATIO_MAX = 200
const UNGUARDED_BYTES = 67_108_864

export interface EncodedStream {
  /** Named in errors. */
  readonly device: string
  readonly encoding: CompressedEncoding
  /** Each is valid until the next one is requested. */
  readonly chunks: AsyncIterator<Uint8Array>
  /** Whether it was compressed by our own software, so that any ratio is accepted. */
  readonly isOurs?: boolean
}

/**
 * The decoded bytes of a device's stream, computed on the thread pool: one chunk in and one out at a time. Throws
 * device-protocol for bytes that are not in the format, a premature end, and more than 64 MiB that were compressed
 * better than 200:1. If iteration stops early, the caller must end the stream.
 */
export async function* decode({
  device,
  encoding,
  chunks,
  isOurs = false,
}: EncodedStream): AsyncGenerator<Buffer, void> {
  const reader = new EncodedReader(chunks)
  let bytes = 0
  try {
    // Node's zstd decoder ends after a frame even if more bytes follow in the same chunk.
    while (await reader.hasMore()) {
      const { takenBytes } = reader
      for await (const chunk of decodeSome(encoding, reader)) {
        bytes += chunk.byteLength
        if (!isOurs && bytes > UNGUARDED_BYTES && bytes > reader.readBytes * RATIO_MAX) {
          throw deviceProtocol(device, `sent data that decompresses to more than ${RATIO_MAX} times its size`)
        }
        yield chunk
      }
      if (reader.takenBytes === takenBytes) throw deviceProtocol(device, 'sent bytes that cannot be decoded')
    }
  } catch (error) {
    throw isZlibError(error)
      ? deviceProtocol(device, `sent broken ${encoding} (${error.message})`, error)
      : error
  }
}

/** Decodes as much as one decoder accepts, which is at least one member or frame. */
async function* decodeSome(
  encoding: CompressedEncoding,
  reader: EncodedReader,
): AsyncGenerator<Buffer, void> {
  const decoder = encoding === 'gzip' ? createGunzip(OPTIONS) : createZstdDecompress(ZSTD_OPTIONS)
  const fed = feed(decoder, reader)
  fed.catch((error) => decoder.destroy(error))
  try {
    for await (const chunk of decoder as AsyncIterable<Buffer>) yield chunk
    await fed
  } finally {
    decoder.destroy()
  }
}

/** The compressed bytes, and how much of them is decoded. */
class EncodedReader {
  rest: Uint8Array = new Uint8Array(0)
  readBytes = 0
  readonly #chunks: AsyncIterator<Uint8Array>

  constructor(chunks: AsyncIterator<Uint8Array>) {
    this.#chunks = chunks
  }

  get takenBytes(): number {
    return this.readBytes - this.rest.byteLength
  }

  /** Whether there are bytes in `rest`; requests the next chunk only if there are none. */
  async hasMore(): Promise<boolean> {
    while (this.rest.byteLength === 0) {
      const next = await this.#chunks.next()
      if (next.done === true) return false
      this.rest = next.value
      this.readBytes += next.value.byteLength
    }
    return true
  }
}

const OPTIONS = { chunkSize: CHUNK_BYTES }
const ZSTD_OPTIONS = {
  chunkSize: CHUNK_BYTES,
  params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX },
}

/** Feeds the decoder until it or the input ends. A chunk is fully decoded before the next one is requested. */
async function feed(decoder: Gunzip | ZstdDecompress, reader: EncodedReader): Promise<void> {
  const closed = new Promise<void>((resolve) => decoder.once('close', () => resolve()))
  while (await reader.hasMore()) {
    const before = decoder.bytesWritten
    const written = new Promise<void>((resolve) => decoder.write(reader.rest, () => resolve()))
    await Promise.race([written, closed])
    const takenBytes = decoder.bytesWritten - before
    reader.rest = reader.rest.subarray(takenBytes)
    if (decoder.destroyed || reader.rest.byteLength > 0) return
  }
  decoder.end()
}

function isZlibError(error: unknown): error is Error {
  return error instanceof Error && 'code' in error && /^(Z_|ZSTD_)/.test(String(error.code))
}
