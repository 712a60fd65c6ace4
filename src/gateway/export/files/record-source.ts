/** Merged records on their way into files: cut where a file is full, and counted. */
import { RecordCursor, type RecordsForm } from '../../../shared/pcap/record-cursor.ts'
import type { PacketCounts, PacketSource, TakeLimit } from './packet-source.ts'

/** Takes whole records from `records`, whose chunks end with whole records. Always dispose it. */
export class RecordSource implements PacketSource {
  readonly #chunks: AsyncIterator<Uint8Array>
  readonly #form: RecordsForm
  #rest: Uint8Array | undefined
  #isEnded = false

  constructor(records: AsyncIterable<Uint8Array>, form: RecordsForm) {
    this.#chunks = records[Symbol.asyncIterator]()
    this.#form = form
  }

  get hasMore(): boolean {
    return this.#rest !== undefined || !this.#isEnded
  }

  async *take(
    first: Uint8Array,
    { maxBytes, takesOne }: TakeLimit,
    onCounts: (counts: PacketCounts) => void,
  ): AsyncGenerator<Uint8Array, void> {
    if (first.length > 0) yield first
    let given = 0
    for (let chunk = await this.#next(); chunk !== undefined; chunk = await this.#next()) {
      const end = wholeRecords(chunk, maxBytes - given, takesOne && given === 0)
      this.#rest = end < chunk.length ? chunk.subarray(end) : undefined
      if (end > 0) {
        const taken = chunk.subarray(0, end)
        onCounts(this.#count(taken))
        given += end
        yield taken
      }
      if (this.#rest !== undefined) return
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#chunks.return?.()
  }

  async #next(): Promise<Uint8Array | undefined> {
    const rest = this.#rest
    this.#rest = undefined
    if (rest !== undefined) return rest
    if (this.#isEnded) return undefined
    const next = await this.#chunks.next()
    if (next.done !== true) return next.value
    this.#isEnded = true
    return undefined
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
