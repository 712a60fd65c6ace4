import { constants, createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from 'node:zlib'
import { CapfleetError } from '../base/error.ts'
import { deviceProtocol } from '../device/device-failure.ts'
import { RecordBoundary } from '../pcap/record-boundary.ts'
import type { Encoding } from '../query/query-values.ts'
import type { BodyGuard } from './body-guard.ts'

const OUTPUT_BYTES = 256 * 1024
/** 128 MiB of window: what zstd itself accepts without being told to. */
const ZSTD_WINDOW_LOG_MAX = 27
/** Above this a stream of a few kilobytes could keep a core busy for hours. */
const RATIO_MAX = 200
/** Small streams may be anything; so may the beginning of a large one. */
const RATIO_FREE_BYTES = 64 * 1024 * 1024

interface Decoding {
  readonly decoder: Gunzip | ZstdDecompress
  /** Settles when everything decoded has been judged. */
  readonly ended: Promise<void>
}

/**
 * A compressed PCAP is whole when the last gzip member or zstd frame is, and what is inside ends
 * behind a record. Decompresses everything and keeps nothing.
 */
export class CompressedGuard implements BodyGuard {
  /** Only the end of the decompressed bytes could say. */
  readonly mayBeWhole = true
  readonly takesTime = true
  readonly #device: string
  readonly #encoding: Exclude<Encoding, 'none'>
  readonly #boundary: RecordBoundary
  #decoding: Decoding | undefined
  #inputBytes = 0
  #outputBytes = 0

  constructor(device: string, encoding: Exclude<Encoding, 'none'>) {
    this.#device = device
    this.#encoding = encoding
    this.#boundary = new RecordBoundary(`device ${device}`)
  }

  async feed(pieces: readonly Buffer[]): Promise<void> {
    for (const piece of pieces) {
      this.#inputBytes += piece.length
      for (let rest = piece; rest.length > 0; ) rest = await this.#decode(rest)
    }
  }

  async finish(): Promise<void> {
    this.#decoding?.decoder.end()
    await this.#decoding?.ended
    if (!this.#boundary.atBoundary) throw deviceProtocol(this.#device, 'ended its stream inside a record')
  }

  [Symbol.dispose](): void {
    this.#decoding?.decoder.destroy()
  }

  /** Returns what it did not take: Node's decoder for zstd ends behind a frame that more bytes follow. */
  async #decode(bytes: Buffer): Promise<Buffer> {
    this.#decoding ??= this.#begin()
    const { decoder, ended } = this.#decoding
    const takenBefore = decoder.bytesWritten
    const written = new Promise<void>((resolve) => decoder.write(bytes, () => resolve()))
    await Promise.race([written, ended])
    if (decoder.errored !== null) await ended
    const rest = bytes.subarray(decoder.bytesWritten - takenBefore)
    if (rest.length === 0) return rest
    await ended
    this.#decoding = undefined
    if (decoder.bytesWritten === 0) throw deviceProtocol(this.#device, 'sent bytes that no decoder takes')
    return rest
  }

  #begin(): Decoding {
    const decoder = createDecoder(this.#encoding)
    const ended = this.#judge(decoder)
    // feed() and finish() tell of a failure; a guard that is given up needs nobody to listen.
    ended.catch(() => undefined)
    decoder.on('error', () => undefined)
    return { decoder, ended }
  }

  async #judge(decoder: AsyncIterable<Buffer>): Promise<void> {
    try {
      for await (const chunk of decoder) {
        this.#outputBytes += chunk.length
        this.#refuseBomb()
        this.#boundary.feed([chunk])
      }
    } catch (error) {
      if (error instanceof CapfleetError) throw error
      throw deviceProtocol(
        this.#device,
        `sent a compressed stream that is damaged or unfinished (${String(error)})`,
        error,
      )
    }
  }

  #refuseBomb(): void {
    const isBomb = this.#outputBytes > RATIO_FREE_BYTES && this.#outputBytes > this.#inputBytes * RATIO_MAX
    if (!isBomb) return
    throw deviceProtocol(
      this.#device,
      `sent a stream that decompresses to more than ${RATIO_MAX} times its size`,
    )
  }
}

function createDecoder(encoding: Exclude<Encoding, 'none'>): Gunzip | ZstdDecompress {
  if (encoding === 'gzip') return createGunzip({ chunkSize: OUTPUT_BYTES })
  return createZstdDecompress({
    chunkSize: OUTPUT_BYTES,
    params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX },
  })
}
