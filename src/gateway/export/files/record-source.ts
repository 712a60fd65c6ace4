/** Merged records on their way into files: cut where a file is full, and counted. */
import { MAX_CAPTURED_LENGTH, RECORD_HEADER_BYTES } from '../../../shared/pcap/pcap-sizes.ts'

const FRACTION_OFFSET = 4
const CAPTURED_LENGTH_OFFSET = 8

/** What was written to a file. */
export interface RecordCounts {
  readonly packets: number
  readonly bytes: number
  readonly firstNs: bigint | undefined
  readonly lastNs: bigint | undefined
}

/** Takes whole records from `records`, whose chunks end with whole records. Always dispose it. */
export class RecordSource implements AsyncDisposable {
  readonly #chunks: AsyncIterator<Uint8Array>
  readonly #nsPerFraction: bigint
  #rest: Uint8Array | undefined
  #isEnded = false

  constructor(records: AsyncIterable<Uint8Array>, { nanoseconds }: { readonly nanoseconds: boolean }) {
    this.#chunks = records[Symbol.asyncIterator]()
    this.#nsPerFraction = nanoseconds ? 1n : 1_000n
  }

  /** Whether records are left. */
  get hasMore(): boolean {
    return this.#rest !== undefined || !this.#isEnded
  }

  /**
   * Yields `first`, then records until the next one would exceed `maxBytes`; at least one if `takesOne`. Its chunks
   * are valid until the second one after them is requested. Returns the counts.
   */
  async *take(
    first: Uint8Array,
    { maxBytes, takesOne }: { readonly maxBytes: number; readonly takesOne: boolean },
    onCounts: (counts: RecordCounts) => void,
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

  #count(records: Uint8Array): RecordCounts {
    const view = viewOf(records)
    let packets = 0
    let last = 0
    for (let at = 0; at < records.length; at = nextRecord(view, at)) {
      packets += 1
      last = at
    }
    return {
      packets,
      bytes: records.length,
      firstNs: packets === 0 ? undefined : this.#timeAt(view, 0),
      lastNs: packets === 0 ? undefined : this.#timeAt(view, last),
    }
  }

  #timeAt(view: DataView, at: number): bigint {
    const seconds = BigInt(view.getUint32(at, true))
    return seconds * 1_000_000_000n + BigInt(view.getUint32(at + FRACTION_OFFSET, true)) * this.#nsPerFraction
  }
}

/** Number of bytes at the start of `chunk` that are whole records within `maxBytes`. */
function wholeRecords(chunk: Uint8Array, maxBytes: number, takesOne: boolean): number {
  if (chunk.length <= maxBytes) return chunk.length
  const view = viewOf(chunk)
  let end = 0
  for (let next = nextRecord(view, 0); next <= maxBytes; next = nextRecord(view, end)) end = next
  return end === 0 && takesOne ? nextRecord(view, 0) : end
}

function nextRecord(view: DataView, at: number): number {
  const capturedLength = view.getUint32(at + CAPTURED_LENGTH_OFFSET, true)
  if (capturedLength > MAX_CAPTURED_LENGTH) throw new Error(`a merged record of ${capturedLength} bytes`)
  return at + RECORD_HEADER_BYTES + capturedLength
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
