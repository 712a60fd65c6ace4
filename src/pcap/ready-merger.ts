import { InputHeap } from './input-heap.ts'
import type { PcapInput } from './pcap-input.ts'

/** Records strictly below this key may go out. */
interface KeyLimit {
  readonly seconds: number
  readonly fraction: number
}

const NO_LIMIT: KeyLimit = { seconds: Number.POSITIVE_INFINITY, fraction: 0 }
const OUTPUT_BYTES = 1_048_576
/** A longer run is passed on as it is: copying it costs more than one more write. */
const PASS_ON_BYTES = 65_536
const NO_BYTES = Buffer.alloc(0)

/**
 * The part of a merge that never waits: moves runs of records from the inputs that have some at
 * hand into output chunks. A run is all records of one input that come before the next record of
 * any other input; it is found by comparing headers and moved by one copy.
 */
export class ReadyMerger {
  readonly #heap = new InputHeap()
  readonly #limit: KeyLimit
  #chunk = NO_BYTES
  #chunkBytes = 0
  #ready: Buffer[] = []

  /** Every input must have been filled once. */
  constructor(inputs: readonly PcapInput[], tsMaxNs: bigint | undefined) {
    for (const [rank, input] of inputs.entries()) {
      if (input.hasRecord) this.#heap.add(input, rank)
    }
    this.#limit = limitAfter(this.#heap.first?.input, tsMaxNs)
  }

  /**
   * Merges until a chunk is ready ('ready': take it by flush()), the next input has no record at
   * hand ('dry': fill `dryInput`, then call refilled()), or nothing is left ('end').
   */
  advance(): 'ready' | 'dry' | 'end' {
    for (;;) {
      const first = this.#heap.first
      if (first === undefined) return 'end'
      const { input } = first
      if (!input.hasRecord) return 'dry'
      let { seconds, fraction } = this.#limit
      if (!isBelow(input.keySeconds, input.keyFraction, seconds, fraction)) return 'end'
      const next = this.#heap.runnerUp
      if (next !== undefined) {
        const nextSeconds = next.input.keySeconds
        // Keys are whole numbers: "up to and with this key" is "below the next one".
        const nextFraction = next.input.keyFraction + (first.rank < next.rank ? 1 : 0)
        if (isBelow(nextSeconds, nextFraction, seconds, fraction)) {
          seconds = nextSeconds
          fraction = nextFraction
        }
      }
      const runBytes = input.takeRun(seconds, fraction)
      this.#append(input.window, input.front - runBytes, input.front)
      if (input.hasRecord) this.#heap.sinkFirst()
      if (this.#ready.length > 0) return 'ready'
    }
  }

  /** The input that must be filled before the merge can go on. */
  get dryInput(): PcapInput | undefined {
    return this.#heap.first?.input
  }

  /** Puts the filled input where its new key belongs, or lets it go when it has ended. */
  refilled(): void {
    if (this.#heap.first?.input.hasRecord === true) this.#heap.sinkFirst()
    else this.#heap.removeFirst()
  }

  /** Hands out everything merged so far, in order. */
  flush(): Buffer[] {
    this.#closeChunk()
    return this.takeReady()
  }

  /** Hands out the chunks that are complete; the one being filled stays. */
  takeReady(): Buffer[] {
    const ready = this.#ready
    this.#ready = []
    return ready
  }

  /** Adds the records in `bytes` from `start` to `end`. */
  #append(bytes: Buffer, start: number, end: number): void {
    if (end - start >= PASS_ON_BYTES) {
      this.#closeChunk()
      this.#ready.push(bytes.subarray(start, end))
      return
    }
    if (this.#chunkBytes + (end - start) > this.#chunk.byteLength) {
      this.#closeChunk()
      this.#chunk = Buffer.allocUnsafeSlow(OUTPUT_BYTES)
    }
    bytes.copy(this.#chunk, this.#chunkBytes, start, end)
    this.#chunkBytes += end - start
  }

  #closeChunk(): void {
    if (this.#chunkBytes > 0) this.#ready.push(this.#chunk.subarray(0, this.#chunkBytes))
    this.#chunk = this.#chunk.subarray(this.#chunkBytes)
    this.#chunkBytes = 0
  }
}

/** The key that ends the merge: `tsMaxNs` after the first record of all, in that input's unit. */
function limitAfter(first: PcapInput | undefined, tsMaxNs: bigint | undefined): KeyLimit {
  if (first === undefined || tsMaxNs === undefined) return NO_LIMIT
  const endNs = first.keyNs + tsMaxNs
  const fractionNs = Number(endNs % 1_000_000_000n)
  return {
    seconds: Number(endNs / 1_000_000_000n),
    fraction: first.header.nanoseconds ? fractionNs : Math.ceil(fractionNs / 1000),
  }
}

function isBelow(seconds: number, fraction: number, limitSeconds: number, limitFraction: number): boolean {
  return seconds < limitSeconds || (seconds === limitSeconds && fraction < limitFraction)
}
