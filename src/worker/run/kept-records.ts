/**
 * The records of files that a target has, in order: what an export already has of a piece before its holes are filled.
 * They are read in parts, up to the end of each window, and possibly by several workers one after another.
 */
import { type ExportOrder, orderedQuery } from '../../gateway/export/export-order.ts'
import type { ExportedFile, KeptPlace } from '../../gateway/export/export-record.ts'
import type { ByteRange, ExportTarget } from '../../gateway/export/target/export-target.ts'
import { decode } from '../../gateway/fetch/decode.ts'
import { formatPcapHeader, type PcapHeader, parsePcapHeader } from '../../shared/pcap/pcap-header.ts'
import { PCAP_HEADER_BYTES } from '../../shared/pcap/pcap-sizes.ts'
import { RecordCursor } from '../../shared/pcap/record-cursor.ts'
import { encodingOf } from '../../shared/query/query-values.ts'

export interface KeptFiles {
  readonly target: ExportTarget
  readonly order: ExportOrder
  /** The n-th file of a piece, from 0, or undefined if there is none. A piece has at least one. */
  readonly fileAt: (index: number) => Promise<ExportedFile | undefined>
}

const NOTHING = new Uint8Array(0)
const NS_PER_S = 1_000_000_000n

export class KeptRecords implements AsyncDisposable {
  readonly header: PcapHeader
  readonly #kept: KeptFiles
  #place: KeptPlace
  /** The file at #place; undefined: not open. */
  #chunks: AsyncIterator<Uint8Array> | undefined
  /** Its name. */
  #name = ''
  /** Bytes that were read and not consumed. */
  #rest: Uint8Array = NOTHING

  /** Continues at `place`. Fails like the target. */
  static async open(kept: KeptFiles, place: KeptPlace): Promise<KeptRecords> {
    return new KeptRecords(kept, place, await keptHeader(kept))
  }

  private constructor(kept: KeptFiles, place: KeptPlace, header: PcapHeader) {
    this.#kept = kept
    this.#place = place
    this.header = header
  }

  /** The position after the last record that was consumed. */
  get place(): KeptPlace {
    return this.#place
  }

  /**
   * A PCAP of all records up to the first one that is not before `untilNs`; undefined: of all that are left. Must be
   * read to its end before the next one is taken.
   */
  async *take(untilNs: bigint | undefined): AsyncGenerator<Uint8Array, void> {
    yield formatPcapHeader(this.header)
    for (;;) {
      const { end, isCut } = recordsBefore(this.#rest, this.#limit(untilNs))
      const records = this.#rest.subarray(0, end)
      this.#rest = this.#rest.subarray(end)
      this.#place = { ...this.#place, bytes: this.#place.bytes + end }
      if (end > 0) yield records
      if (isCut) return
      const more = await this.#read()
      if (more === undefined) return
      this.#rest = this.#rest.length === 0 ? more : Buffer.concat([this.#rest, more])
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#chunks?.return?.()
    this.#chunks = undefined
  }

  /** In the units of the files; a record is before it if its seconds are, or its fraction of the same second. */
  #limit(untilNs: bigint | undefined): Limit {
    if (untilNs === undefined) return { seconds: Number.POSITIVE_INFINITY, fraction: 0 }
    const fractionNs = Number(untilNs % NS_PER_S)
    const fraction = this.header.nanoseconds ? fractionNs : fractionNs / 1_000
    return { seconds: Number(untilNs / NS_PER_S), fraction }
  }

  /** The bytes that follow, or undefined if no file is left. */
  async #read(): Promise<Uint8Array | undefined> {
    for (;;) {
      this.#chunks ??= await this.#open()
      if (this.#chunks === undefined) return undefined
      const next = await this.#chunks.next()
      if (next.done !== true) return next.value
      if (this.#rest.length > 0) throw new Error(`${this.#name} of an export ends inside a record`)
      this.#place = { file: this.#place.file + 1, bytes: 0 }
      this.#chunks = undefined
    }
  }

  async #open(): Promise<AsyncIterator<Uint8Array> | undefined> {
    const file = await this.#kept.fileAt(this.#place.file)
    if (file === undefined) return undefined
    this.#name = file.name
    return recordBytes(this.#kept, file, this.#place.bytes)
  }
}

/** The header of the files. Fails like the target. */
export async function keptHeader(kept: KeptFiles): Promise<PcapHeader> {
  const file = await kept.fileAt(0)
  if (file === undefined) throw new Error('an export that is filled has files')
  let bytes: Uint8Array = NOTHING
  for await (const chunk of plainBytes(kept, file, { first: 0, last: PCAP_HEADER_BYTES - 1 })) {
    bytes = Buffer.concat([bytes, chunk])
    if (bytes.length >= PCAP_HEADER_BYTES) break
  }
  return parsePcapHeader(bytes, file.name)
}

interface Limit {
  readonly seconds: number
  readonly fraction: number
}

/** How many bytes at the beginning are whole records before the limit, and whether the next record is not. */
function recordsBefore(bytes: Uint8Array, limit: Limit): { readonly end: number; readonly isCut: boolean } {
  const record = new RecordCursor(bytes)
  for (; record.hasHeader; record.at = record.end) {
    const { seconds, fraction, end } = record
    const isBefore = seconds < limit.seconds || (seconds === limit.seconds && fraction < limit.fraction)
    if (!isBefore) return { end: record.at, isCut: true }
    if (end > bytes.length) break
  }
  return { end: record.at, isCut: false }
}

/** The records of one file, starting after `taken` bytes of them. */
async function* recordBytes(kept: KeptFiles, file: ExportedFile, taken: number): AsyncGenerator<Uint8Array> {
  const first = PCAP_HEADER_BYTES + taken
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
async function* plainBytes(
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
