import type { LiveCounts } from '../../../native/live-capture.ts'

export interface Rates {
  readonly bitsPerSecond: number
  readonly packetsPerSecond: number
  /** Packets dropped because the disk was too slow. */
  readonly diskDropsPerSecond: number
}

interface Sample {
  readonly atMs: number
  readonly packets: bigint
  readonly bytes: bigint
  readonly diskDrops: bigint
}

const PERIOD_MS = 5_000
const NOTHING = { packets: 0n, bytes: 0n, diskDrops: 0n }
export const NO_RATES: Rates = { bitsPerSecond: 0, packetsPerSecond: 0, diskDropsPerSecond: 0 }

/**
 * The capture rate of all ports together, over the last 5 s or slightly more: what was written to disk, without what
 * the ports' filters drop.
 */
export class CaptureRates {
  /** Ascending; the first is older than the period as soon as there is such a sample. */
  #samples: readonly Sample[] = []

  /** Called several times a second; `atMs` is from a clock that never steps. */
  sample(counts: LiveCounts, atMs: number): void {
    // A driver starts counting at 0.
    const before = this.#samples.length > 0 ? this.#samples : [{ ...NOTHING, atMs: atMs - PERIOD_MS }]
    const samples = [...before, sampleOf(counts, atMs)]
    const first = samples.findLastIndex((sample) => sample.atMs <= atMs - PERIOD_MS)
    this.#samples = samples.slice(Math.max(0, first))
  }

  get perSecond(): Rates {
    const [before, now] = [this.#samples.at(0), this.#samples.at(-1)]
    if (before === undefined || now === undefined) return NO_RATES
    // A short time after the start would exaggerate the rate.
    const seconds = Math.max(PERIOD_MS, now.atMs - before.atMs) / 1_000
    return {
      bitsPerSecond: (Number(now.bytes - before.bytes) * 8) / seconds,
      packetsPerSecond: Number(now.packets - before.packets) / seconds,
      diskDropsPerSecond: Number(now.diskDrops - before.diskDrops) / seconds,
    }
  }
}

function sampleOf({ ports }: LiveCounts, atMs: number): Sample {
  return {
    atMs,
    packets: ports.reduce((sum, { storedPackets }) => sum + storedPackets, 0n),
    bytes: ports.reduce((sum, { storedBytes }) => sum + storedBytes, 0n),
    diskDrops: ports.reduce((sum, { diskDrops }) => sum + diskDrops, 0n),
  }
}
