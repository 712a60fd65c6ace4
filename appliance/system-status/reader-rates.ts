import type { Reader } from '../downloads/stream-limit.ts'

/** What a download has read from the store and returned. */
export interface ReaderTotals {
  readonly readPackets: bigint
  readonly readBytes: bigint
  readonly writtenPackets: bigint
  /** Bytes of the body. */
  readonly writtenBytes: bigint
  readonly discardedPackets: bigint
}

export interface ReaderFigures {
  readonly totals: ReaderTotals
  /** Over the last seconds; a younger download counts as one second old. */
  readonly perSecond: ReaderTotals
}

interface Sample {
  readonly atMs: number
  readonly totals: ReaderTotals
}

const PERIOD_MS = 1_000
const NOTHING: ReaderTotals = {
  readPackets: 0n,
  readBytes: 0n,
  writtenPackets: 0n,
  writtenBytes: 0n,
  discardedPackets: 0n,
}

/** Rates of the running downloads, from samples taken every second. Ends when disposed. */
export class ReaderRates implements Disposable {
  readonly #readers: () => Iterable<Reader>
  readonly #timer: NodeJS.Timeout
  /** The last two samples of each, older first. */
  #samples = new Map<Reader, readonly Sample[]>()

  constructor(readers: () => Iterable<Reader>) {
    this.#readers = readers
    this.#timer = setInterval(() => this.#sample(), PERIOD_MS).unref()
  }

  figuresOf(reader: Reader): ReaderFigures {
    const now = sampleOf(reader)
    const beginning = { atMs: now.atMs - PERIOD_MS, totals: NOTHING }
    const [before = beginning] = this.#samples.get(reader) ?? []
    return { totals: now.totals, perSecond: ratesBetween(before, now) }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  #sample(): void {
    const samples = new Map<Reader, readonly Sample[]>()
    for (const reader of this.#readers()) {
      samples.set(reader, [...(this.#samples.get(reader) ?? []).slice(-1), sampleOf(reader)])
    }
    this.#samples = samples
  }
}

function sampleOf(reader: Reader): Sample {
  const totals = reader.totals?.()
  return {
    atMs: performance.now(),
    totals: {
      readPackets: totals?.readPackets ?? 0n,
      readBytes: totals?.readBytes ?? 0n,
      writtenPackets: totals === undefined ? 0n : totals.packets - totals.skippedPackets,
      writtenBytes: reader.bytes,
      discardedPackets: totals?.excludedPackets ?? 0n,
    },
  }
}

function ratesBetween(before: Sample, now: Sample): ReaderTotals {
  // A very recent sample would exaggerate the rate.
  const elapsedMs = BigInt(Math.round(Math.max(PERIOD_MS, now.atMs - before.atMs)))
  const rate = (key: keyof ReaderTotals): bigint => {
    const grown = now.totals[key] - before.totals[key]
    return grown > 0n ? (grown * 1000n) / elapsedMs : 0n
  }
  return {
    readPackets: rate('readPackets'),
    readBytes: rate('readBytes'),
    writtenPackets: rate('writtenPackets'),
    writtenBytes: rate('writtenBytes'),
    discardedPackets: rate('discardedPackets'),
  }
}
