/**
 * The records of files that a target has, in order: what an export already has of a piece before its holes are filled.
 * They are read in parts, up to the end of each window, and possibly by several workers one after another.
 */
import type { KeptPlace } from '../../gateway/export/export-record.ts'
import { formatPcapHeader, type PcapHeader, parsePcapHeader } from '../../shared/pcap/pcap-header.ts'
import { PCAP_HEADER_BYTES } from '../../shared/pcap/pcap-sizes.ts'
import { RecordCursor } from '../../shared/pcap/record-cursor.ts'
import { KeptBytes, type KeptFiles, plainBytes } from './kept-bytes.ts'

const NOTHING = new Uint8Array(0)
const NS_PER_S = 1_000_000_000n

export class KeptRecords implements AsyncDisposable {
  readonly header: PcapHeader
  readonly #bytes: KeptBytes

  /** Continues at `place`. Fails like the target. */
  static async open(kept: KeptFiles, place: KeptPlace): Promise<KeptRecords> {
    return new KeptRecords(
      new KeptBytes(kept, { place, headBytes: PCAP_HEADER_BYTES }),
      await keptHeader(kept),
    )
  }

  private constructor(bytes: KeptBytes, header: PcapHeader) {
    this.#bytes = bytes
    this.header = header
  }

  /** The position after the last record that was consumed. */
  get place(): KeptPlace {
    return this.#bytes.place
  }

  /**
   * A PCAP of all records up to the first one that is not before `untilNs`; undefined: of all that are left. Must be
   * read to its end before the next one is taken.
   */
  async *take(untilNs: bigint | undefined): AsyncGenerator<Uint8Array, void> {
    yield formatPcapHeader(this.header)
    for (;;) {
      const { end, isCut } = recordsBefore(this.#bytes.rest, this.#limit(untilNs))
      const records = this.#bytes.rest.subarray(0, end)
      this.#bytes.consume(end)
      if (end > 0) yield records
      if (isCut || !(await this.#bytes.read())) return
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#bytes[Symbol.asyncDispose]()
  }

  /** In the units of the files; a record is before it if its seconds are, or its fraction of the same second. */
  #limit(untilNs: bigint | undefined): Limit {
    if (untilNs === undefined) return { seconds: Number.POSITIVE_INFINITY, fraction: 0 }
    const fractionNs = Number(untilNs % NS_PER_S)
    const fraction = this.header.nanoseconds ? fractionNs : fractionNs / 1_000
    return { seconds: Number(untilNs / NS_PER_S), fraction }
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
