/**
 * Merges PCAP streams into one PCAP or pcapng, ordered by time, while they arrive.
 *
 * Order: (key, position in the list of inputs, arrival). The key is the running maximum of the timestamps of that
 * input, so a late record is neither dropped nor delayed; it is counted. If the inputs are in order, so is the output.
 */
import { addAbortListener } from 'node:events'
import { type PcapngOutput, type RecordFigures, RecordMerge } from '../../../native/record-merge.ts'
import { MAX_CAPTURED_LENGTH, RECORD_HEADER_BYTES } from '../../shared/pcap/pcap-sizes.ts'
import type { DedupBy } from '../../shared/query/download/query-values.ts'
import { type FileInterfaces, STATISTICS_BYTES } from './file-interfaces.ts'
import type { PcapInput } from './pcap-input.ts'

/** More than a block of pcapng has beside its packet, with remarks, and the description of its interface. */
const OTHER_BYTES_MAX = 40_960
/** Size of a chunk of the merged stream, with room for the largest record or block. */
const OUTPUT_BYTES = RECORD_HEADER_BYTES + MAX_CAPTURED_LENGTH + OTHER_BYTES_MAX
const NONE_DROPPED = { packets: 0, bytes: 0 }

/** The counts of a merge; live while it runs. */
export interface MergeTotals {
  /** Packets consumed from the inputs, excluding duplicates. */
  readonly packets: number
  /** The counts of each input, in order. */
  readonly inputs: readonly MergedInput[]
  /** Timestamp of the first packet that a limit cut off. */
  readonly nextNs: bigint | undefined
}

/** What one input contributed to the stream. */
export interface MergedInput extends RecordFigures {
  readonly name: string
  /** Packets dropped as copies of one that was written before. */
  readonly duplicates: number
  /** How long the merge waited for this input alone. */
  readonly stalledMs: number
}

export interface MergeOptions {
  readonly maxPackets?: bigint | undefined
  /** Maximum size of the records including their headers, without the file header; in pcapng, of all blocks. */
  readonly maxBytes?: bigint | undefined
  /** End before the first packet that is this much or more after the first one (TSMax). */
  readonly tsMaxNs?: bigint | undefined
  /** Drop packets that are copies of one written at most this long before, from any input. */
  readonly dedupNs?: bigint | undefined
  /** What copies have in common. Default: payload. */
  readonly dedupBy?: DedupBy | undefined
  /** Maximum number of captured bytes per packet. */
  readonly sliceBytes?: number | undefined
  /** Write timestamps in microseconds, truncated after the merge, whose order is that of the inputs' nanoseconds. */
  readonly toMicroseconds?: boolean | undefined
  /** Aborting ends the wait for an input: the merge throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Memory for the chunks, PcapMerge.outputBytes. Default: its own. */
  readonly outputs?: Buffer | undefined
  /** Write pcapng with these interfaces, which all inputs refer to. Default: PCAP records. */
  readonly interfaces?: FileInterfaces | undefined
}

/**
 * The merge of inputs that share one link type, which commonHeader() checks; in pcapng they need not.
 *
 * Memory: what PcapInput holds, and two output chunks. An input is read only when its available bytes are used up, so
 * a caller that stops taking chunks stops the inputs.
 */
export class PcapMerge {
  /** Size of two chunks that are filled alternately, so that one stays unchanged while the next is filled. */
  static readonly outputBytes = 2 * OUTPUT_BYTES
  readonly #inputs: readonly PcapInput[]
  readonly #options: MergeOptions
  readonly #stalledMs: number[]
  #merge: RecordMerge | undefined
  /** Ends the current wait for an input with a failure. */
  #endWait: ((reason: unknown) => void) | undefined

  constructor(inputs: readonly PcapInput[], options: MergeOptions = {}) {
    this.#inputs = inputs
    this.#options = options
    this.#stalledMs = inputs.map(() => 0)
  }

  get totals(): MergeTotals {
    const inputs = this.#inputs.map((input, rank) => this.#inputTotals(input, rank))
    const packets = inputs.reduce((sum, input) => sum + input.packets, 0)
    return { packets, inputs, nextNs: this.#merge?.nextNs }
  }

  /**
   * Yields the records of all inputs (no file header), or their blocks; each chunk consists of whole records, and is valid until the
   * second one after it is requested. Merged records are yielded before the merge waits for a slow input.
   *
   * Throws device-protocol, naming the input, if one ends inside a record or contains an impossible one; an input's
   * own error is thrown unchanged. Everything merged until then has been yielded, except for the packets that Dedup
   * holds in pcapng. All inputs are closed however the generator ends. Must be called only once.
   */
  async *chunks(): AsyncGenerator<Buffer, void> {
    const { signal } = this.#options
    using _ending = signal && addAbortListener(signal, () => this.#endWait?.(signal.reason))
    try {
      await this.#fillNeedy()
      const merge = this.#createMerge()
      if (merge !== undefined) yield* this.#merged(merge)
    } finally {
      await this.close()
    }
  }

  /** Closes all inputs; needed if chunks() may never have begun. Idempotent. */
  async close(): Promise<void> {
    await Promise.all(this.#inputs.map((input) => input.close()))
  }

  async *#merged(merge: RecordMerge): AsyncGenerator<Buffer, void> {
    const outputs = this.#options.outputs ?? Buffer.allocUnsafeSlow(PcapMerge.outputBytes)
    let [output, other] = [outputs.subarray(0, OUTPUT_BYTES), outputs.subarray(OUTPUT_BYTES)]
    for (;;) {
      const state = merge.advance(output)
      if (state === 'dry' && this.#inputs[merge.dryInput]?.fillFromArrived() === true) {
        merge.refilled()
        continue
      }
      let written = 0
      const filling = state === 'dry' ? this.#refill(merge) : undefined
      // Merged records do not wait for a slow input, and are not lost if one fails.
      if (filling === undefined || !(await succeedsSoon(filling))) {
        written = merge.takeWritten()
        if (written > 0) yield output.subarray(0, written)
        if (written > 0) [output, other] = [other, output]
      }
      if (filling !== undefined) await filling
      if (state === 'end') return
      if (state === 'ready' && written === 0) throw new Error('a block is larger than the room for blocks')
    }
  }

  #inputTotals({ name, figures }: PcapInput, rank: number): MergedInput {
    const { packets, bytes, outOfOrder, firstNs, lastNs } = figures
    const dropped = this.#merge?.dropped(rank) ?? NONE_DROPPED
    return {
      name,
      packets: packets - dropped.packets,
      bytes: bytes - dropped.bytes,
      firstNs,
      lastNs,
      outOfOrder,
      duplicates: dropped.packets,
      stalledMs: Math.round(this.#stalledMs[rank] ?? 0),
    }
  }

  #createMerge(): RecordMerge | undefined {
    // An input without packets does not count for the link type.
    const first = this.#inputs.find((input) => input.hasRecord) ?? this.#inputs[0]
    if (first === undefined) return undefined
    const { tsMaxNs: maxSpanNs, maxPackets, maxBytes, dedupNs, dedupBy } = this.#options
    const records = this.#inputs.map((input) => input.records)
    const { linkType } = first.header
    const { sliceBytes, toMicroseconds = false } = this.#options
    const limits = { maxSpanNs, maxPackets, maxBytes, dedupNs, dedupBy }
    const pcapng = this.#beginPcapng()
    this.#merge = new RecordMerge(records, { ...limits, linkType, sliceBytes, toMicroseconds, pcapng })
    return this.#merge
  }

  /** All inputs have described their first interfaces. */
  #beginPcapng(): PcapngOutput | undefined {
    const { interfaces, sliceBytes = MAX_CAPTURED_LENGTH } = this.#options
    if (interfaces === undefined) return undefined
    interfaces.begin(Math.min(interfaces.snaplen, sliceBytes))
    return {
      interfaces: interfaces.merged,
      ofInputs: this.#inputs.map((input) => (input.interface === 'tagged' ? undefined : input.interface)),
      closingBytes: STATISTICS_BYTES,
    }
  }

  async #refill(merge: RecordMerge): Promise<void> {
    const startMs = performance.now()
    const rank = merge.dryInput
    await this.#fill(this.#inputs.slice(rank, rank + 1))
    // After a pause every input must be filled: nothing was lost, the same packets arrive again.
    await this.#fillNeedy()
    this.#stalledMs[rank] = (this.#stalledMs[rank] ?? 0) + performance.now() - startMs
    merge.refilled()
  }

  /** Fills all inputs that have no record, concurrently; at the start and after a pause that is all of them. */
  async #fillNeedy(): Promise<void> {
    for (let needy = this.#needy(); needy.length > 0; needy = this.#needy()) await this.#fill(needy)
  }

  #needy(): readonly PcapInput[] {
    return this.#inputs.filter((input) => !input.hasRecord && !input.ended)
  }

  #fill(inputs: readonly PcapInput[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#endWait = reject
      if (this.#options.signal?.aborted === true) reject(this.#options.signal.reason)
      Promise.all(inputs.map((input) => input.fill())).then(() => resolve(), reject)
    })
  }
}

/** Whether `work` succeeds before the event loop has polled for new input once. Handles its failure. */
function succeedsSoon(work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const late = setImmediate(resolve, false)
    const settle = (isSuccess: boolean) => {
      clearImmediate(late)
      resolve(isSuccess)
    }
    work.then(
      () => settle(true),
      () => settle(false),
    )
  })
}
