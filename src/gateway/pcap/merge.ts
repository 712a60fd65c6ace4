/**
 * Merges PCAP streams into one, ordered by time, while they arrive.
 *
 * Order: (key, position in the list of inputs, arrival). The key is the running maximum of the
 * timestamps of that input, so a late record is neither dropped nor held; it is counted. Inputs
 * that are in order give an output that is in order.
 */
import { addAbortListener } from 'node:events'
import { type RecordFigures, RecordMerge } from '../../../native/record-merge.ts'
import { MAX_CAPTURED_LENGTH, RECORD_HEADER_BYTES } from '../../shared/pcap/pcap-sizes.ts'
import type { PcapInput } from './pcap-input.ts'

/** Size of a chunk of the merged stream, with room for the largest record. */
const OUTPUT_BYTES = RECORD_HEADER_BYTES + MAX_CAPTURED_LENGTH
const NONE_DROPPED = { packets: 0, bytes: 0 }

/** The figures of a merge; live while it runs. */
export interface MergeTotals {
  /** Packets that were taken from the inputs, without duplicates. */
  readonly packets: number
  /** The figures of each input, in their order. */
  readonly inputs: readonly MergedInput[]
  /** Timestamp of the first packet that a limit left out. */
  readonly nextNs: bigint | undefined
}

/** What is in the stream of one input. */
export interface MergedInput extends RecordFigures {
  readonly name: string
  /** Packets that were left out because another input had them. */
  readonly duplicates: number
  /** How long the merge waited for this input alone. */
  readonly stalledMs: number
}

export interface MergeOptions {
  readonly maxPackets?: bigint | undefined
  /** Limit of the records with their headers, without the file header. */
  readonly maxBytes?: bigint | undefined
  /** End before the first packet that is this much or more after the first one (TSMax). */
  readonly tsMaxNs?: bigint | undefined
  /** Leave out what another input had at most so long before. */
  readonly dedupNs?: bigint | undefined
  /** So many captured bytes of each packet, at most. */
  readonly sliceBytes?: number | undefined
  /** Give timestamps in microseconds, truncated behind the merge: its order is that of nanoseconds, as inputs have them. */
  readonly toMicroseconds?: boolean | undefined
  /** Aborting ends the wait for an input: the merge throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Memory for the chunks, PcapMerge.outputBytes; default: its own. */
  readonly outputs?: Buffer | undefined
}

/**
 * The merge of inputs that share one link type, which commonHeader() checks.
 *
 * Memory: what PcapInput holds, and two output chunks. An input is read only when its bytes at hand
 * are used up, so a caller that stops taking chunks stops the inputs.
 */
export class PcapMerge {
  /** Size of two chunks, which are filled in turn, so that one stays as it is while the next is filled. */
  static readonly outputBytes = 2 * OUTPUT_BYTES
  readonly #inputs: readonly PcapInput[]
  readonly #options: MergeOptions
  readonly #stalledMs: number[]
  #merge: RecordMerge | undefined
  /** Ends the present wait for an input with a failure. */
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
   * Yields the records of all inputs (no file header), each chunk whole records, and valid until the
   * second one after it is asked for. What is merged goes out before the merge waits for a slow input.
   *
   * Throws device-protocol, naming the input, when one ends inside a record or claims an impossible
   * one; an input's own error passes through unchanged. What was merged until then has been yielded.
   * All inputs are closed when the generator ends in any way. To be called once.
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

  /** Closes all inputs; needed when chunks() may never have begun. Idempotent. */
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
      const filling = state === 'dry' ? this.#refill(merge) : undefined
      // What is merged does not wait for a slow input, and is not lost with one that fails.
      if (filling === undefined || !(await succeedsSoon(filling))) {
        const written = merge.takeWritten()
        if (written > 0) yield output.subarray(0, written)
        if (written > 0) [output, other] = [other, output]
      }
      if (filling !== undefined) await filling
      if (state === 'end') return
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
    // An input without packets has no say in the link type.
    const first = this.#inputs.find((input) => input.hasRecord) ?? this.#inputs[0]
    if (first === undefined) return undefined
    const { tsMaxNs: maxSpanNs, maxPackets, maxBytes, dedupNs } = this.#options
    const records = this.#inputs.map((input) => input.records)
    const { linkType } = first.header
    const { sliceBytes, toMicroseconds = false } = this.#options
    const limits = { maxSpanNs, maxPackets, maxBytes, dedupNs }
    this.#merge = new RecordMerge(records, { ...limits, linkType, sliceBytes, toMicroseconds })
    return this.#merge
  }

  async #refill(merge: RecordMerge): Promise<void> {
    const startMs = performance.now()
    const rank = merge.dryInput
    await this.#fill(this.#inputs.slice(rank, rank + 1))
    // After a pause every input needs to be filled: nothing was lost, the same packets come again.
    await this.#fillNeedy()
    this.#stalledMs[rank] = (this.#stalledMs[rank] ?? 0) + performance.now() - startMs
    merge.refilled()
  }

  /** Fills all inputs that have no record, at the same time; in the beginning and after a pause these are all. */
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

/** Whether `work` succeeds before the event loop has looked for new input once. Hears of its failure. */
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
