/** Merged records on their way into files: cut where a file is full, and counted. */
import { RecordCursor, type RecordsForm } from '../../shared/pcap/record-cursor.ts'
import { DividedChunks } from './divided-chunks.ts'
import type { PacketCounts, PacketSource, TakeLimit } from './packet-source.ts'

/** Takes whole records from `records`, whose chunks end with whole records. Always dispose it. */
export class RecordSource implements PacketSource {
  readonly #chunks: DividedChunks<Uint8Array>
  readonly #form: RecordsForm

  constructor(records: AsyncIterable<Uint8Array>, form: RecordsForm) {
    this.#chunks = new DividedChunks(records)
    this.#form = form
  }

  get hasMore(): boolean {
    return this.#chunks.hasMore
  }

  async *take(
    first: Uint8Array,
    { maxBytes, takesOne }: TakeLimit,
    onCounts: (counts: PacketCounts) => void,
  ): AsyncGenerator<Uint8Array, void> {
    if (first.length > 0) yield first
    let given = 0
    for (let chunk = await this.#chunks.next(); chunk !== undefined; chunk = await this.#chunks.next()) {
      const end = wholeRecords(chunk, maxBytes - given, takesOne && given === 0)
      const isFull = end < chunk.length
      if (isFull) this.#chunks.giveBack(chunk.subarray(end))
      if (end > 0) {
        const taken = chunk.subarray(0, end)
        onCounts(this.#count(taken))
        given += end
        yield taken
      }
      if (isFull) return
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#chunks[Symbol.asyncDispose]()
  }

  #count(records: Uint8Array): PacketCounts {
    const record = new RecordCursor(records, this.#form)
    const first = new RecordCursor(records, this.#form)
    const last = new RecordCursor(records, this.#form)
    let packets = 0
    for (; record.at < records.length; record.at = record.end) {
      packets += 1
      if (isEarlier(record, first)) first.at = record.at
      if (isEarlier(last, record)) last.at = record.at
    }
    return { packets, bytes: records.length, firstNs: first.ns, lastNs: last.ns }
  }
}

/** Without a bigint for each record. */
function isEarlier(one: RecordCursor, other: RecordCursor): boolean {
  const seconds = one.seconds - other.seconds
  return seconds < 0 || (seconds === 0 && one.fraction < other.fraction)
}

/** Number of bytes at the start of `chunk` that are whole records within `maxBytes`. */
function wholeRecords(chunk: Uint8Array, maxBytes: number, takesOne: boolean): number {
  if (chunk.length <= maxBytes) return chunk.length
  const record = new RecordCursor(chunk)
  while (record.end <= maxBytes) record.at = record.end
  return record.at === 0 && takesOne ? record.end : record.at
}
