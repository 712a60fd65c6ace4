/**
 * Merges PCAP streams into one, ordered by time, while they arrive.
 *
 * Order: (key, position in the list of inputs, arrival). The key is the running maximum of the
 * timestamps of that input, so a late record is neither dropped nor held; it is counted. Inputs
 * that are in order give an output that is in order.
 */
import type { InputTotals, PcapInput } from './pcap-input.ts'
import { ReadyMerger } from './ready-merger.ts'

/** The figures of a finished merge; `PcapInput.totals` has those of one input at any time. */
export interface MergeTotals {
  readonly packets: number
  /** Bytes yielded: record headers and captured bytes. */
  readonly bytes: number
  /** In the order of the inputs. */
  readonly inputs: readonly InputTotals[]
}

export interface MergeOptions {
  /** End before the first packet that is this much or more after the first one (API 4.4.2, TSMax). */
  readonly tsMaxNs?: bigint | undefined
  /** Aborting ends the wait for an input: the merge throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Yields the records of all inputs (no file header), each chunk whole records, up to 1 MiB or one
 * input's chunk. What is merged goes out before the merge waits for a slow input. A yielded chunk is
 * the caller's; the merge does not write to it again.
 *
 * Memory: what PcapInput holds, and one output chunk. An input is read only when its bytes at hand
 * are used up, so a caller that stops taking chunks stops the inputs.
 *
 * Throws device-protocol, naming the input, when one ends inside a record or claims an impossible
 * one; an input's own error passes through unchanged. What was merged until then has been yielded.
 * All inputs are closed when the generator ends in any way. They must share one resolution, which
 * commonHeader() checks.
 */
export async function* mergePcap(
  inputs: readonly PcapInput[],
  options: MergeOptions = {},
): AsyncGenerator<Buffer, MergeTotals> {
  const { tsMaxNs, signal } = options
  try {
    await unlessAborted(Promise.all(inputs.map((input) => input.fill())), signal)
    const merger = new ReadyMerger(inputs, tsMaxNs)
    for (;;) {
      const state = merger.advance()
      if (state === 'dry') yield* refill(merger, signal)
      else if (state === 'ready') yield* merger.takeReady()
      else break
    }
    yield* merger.flush()
  } finally {
    await Promise.all(inputs.map((input) => input.close()))
  }
  return totalsOf(inputs)
}

/** Waits for the dry input. If it is slow or fails, what is merged goes out first. */
async function* refill(merger: ReadyMerger, signal: AbortSignal | undefined): AsyncGenerator<Buffer, void> {
  const filling = unlessAborted(merger.dryInput?.fill() ?? Promise.resolve(), signal)
  if (!(await settlesSoon(filling))) yield* merger.flush()
  try {
    await filling
  } catch (error) {
    yield* merger.flush()
    throw error
  }
  merger.refilled()
}

/** Whether `work` settles before the event loop has looked for new input once. */
function settlesSoon(work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const late = setImmediate(resolve, false)
    const settled = () => {
      clearImmediate(late)
      resolve(true)
    }
    work.then(settled, settled)
  })
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    const settled = () => signal.removeEventListener('abort', abort)
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(settled)
    if (signal.aborted) abort()
  })
}

function totalsOf(inputs: readonly PcapInput[]): MergeTotals {
  const totals = inputs.map((input) => input.totals)
  const sum = (count: (of: InputTotals) => number) => totals.reduce((all, one) => all + count(one), 0)
  return { packets: sum((input) => input.packets), bytes: sum((input) => input.bytes), inputs: totals }
}
