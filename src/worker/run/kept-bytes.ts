/** The files that a target has of a piece, in order, as one sequence of bytes that is consumed in parts. */
import { type ExportOrder, orderedQuery } from '../../gateway/export/export-order.ts'
import type { ExportedFile, KeptPlace } from '../../gateway/export/export-record.ts'
import type { ByteRange, ExportTarget } from '../../gateway/export/target/export-target.ts'
import { decode } from '../../gateway/fetch/encoding/decode.ts'
import { encodingOf } from '../../shared/query/download/query-values.ts'

export interface KeptFiles {
  readonly target: ExportTarget
  readonly order: ExportOrder
  /** The n-th file of a piece, from 0, or undefined if there is none. A piece has at least one. */
  readonly fileAt: (index: number) => Promise<ExportedFile | undefined>
}

const NOTHING = new Uint8Array(0)

export interface KeptBytesOptions {
  readonly place: KeptPlace
  /** Bytes at the beginning of each file that are passed over. */
  readonly headBytes: number
}

export class KeptBytes implements AsyncDisposable {
  readonly #kept: KeptFiles
  readonly #headBytes: number
  #place: KeptPlace
  /** The file at #place; undefined: not open. */
  #chunks: AsyncIterator<Uint8Array> | undefined
  /** Its name. */
  #name = ''
  /** Bytes that were read and not consumed. */
  #rest: Uint8Array = NOTHING

  constructor(kept: KeptFiles, { place, headBytes }: KeptBytesOptions) {
    this.#kept = kept
    this.#place = place
    this.#headBytes = headBytes
  }

  /** The position after the last byte that was consumed. */
  get place(): KeptPlace {
    return this.#place
  }

  /** What was read and not consumed, of one file. */
  get rest(): Uint8Array {
    return this.#rest
  }

  /** Consumes the first bytes of the rest. */
  consume(bytes: number): void {
    this.#rest = this.#rest.subarray(bytes)
    this.#place = { ...this.#place, bytes: this.#place.bytes + bytes }
  }

  /** Reads more of the file, or the beginning of the next one; false if no file is left. Fails like the target. */
  async read(): Promise<boolean> {
    for (;;) {
      this.#chunks ??= await this.#open()
      if (this.#chunks === undefined) return false
      const next = await this.#chunks.next()
      if (next.done !== true) {
        this.#rest = this.#rest.length === 0 ? next.value : Buffer.concat([this.#rest, next.value])
        return true
      }
      if (this.#rest.length > 0) throw new Error(`${this.#name} of an export ends inside a packet`)
      this.#place = { file: this.#place.file + 1, bytes: 0 }
      this.#chunks = undefined
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#chunks?.return?.()
    this.#chunks = undefined
  }

  async #open(): Promise<AsyncIterator<Uint8Array> | undefined> {
    const file = await this.#kept.fileAt(this.#place.file)
    if (file === undefined) return undefined
    this.#name = file.name
    return bytesFrom(this.#kept, file, this.#headBytes + this.#place.bytes)
  }
}

/** The bytes of one file, starting at `first`. */
async function* bytesFrom(kept: KeptFiles, file: ExportedFile, first: number): AsyncGenerator<Uint8Array> {
  const isPlain = encodingOf(orderedQuery(kept.order).compression) === 'none'
  if (isPlain && first >= Number(file.bytes)) return
  // Compressed data must be decompressed to find the position.
  let left = isPlain ? 0 : first
  for await (const chunk of plainBytes(kept, file, { first, last: Number(file.bytes) - 1 })) {
    const cut = Math.min(left, chunk.length)
    left -= cut
    if (cut < chunk.length) yield chunk.subarray(cut)
  }
}

/** The decompressed bytes of a file; `range` only applies to an uncompressed file. */
export async function* plainBytes(
  { target, order }: KeptFiles,
  { name }: ExportedFile,
  range: ByteRange,
): AsyncGenerator<Uint8Array> {
  const encoding = encodingOf(orderedQuery(order).compression)
  const place = { exportId: order.id, name }
  if (encoding === 'none') return yield* await target.open(place, range)
  const stream = await target.open(place)
  try {
    const chunks = stream[Symbol.asyncIterator]()
    yield* decode({ device: name, encoding, chunks, isOurs: true })
  } finally {
    stream.destroy()
  }
}
