import type { ClockOffset } from './device-probe.ts'

interface Sample extends ClockOffset {
  readonly takenMs: number
}

/** Samples of 40 s (one every 5 s), during which a device's clock keeps its rate. */
const SAMPLES_MAX = 8
/** How fast two undisciplined clocks may drift apart: 100 parts per million. */
const DRIFT_NS_PER_MS = 100

/**
 * The offset of a device's clock from several probes. A slow probe is imprecise: the one with the smallest bound
 * counts, as long as it agrees with the newest one. If it does not, one of the clocks was set, and earlier samples are
 * dropped.
 */
export class ClockFilter {
  #samples: readonly Sample[] = []

  /** Adds a sample; `nowMs` is read from a clock that is never set. */
  add(offset: ClockOffset, nowMs: number): void {
    const newest = { ...offset, takenMs: nowMs }
    const kept = this.#samples.filter((sample) => agree(aged(sample, nowMs), newest))
    this.#samples = [newest, ...(kept.length === this.#samples.length ? kept : [])].slice(0, SAMPLES_MAX)
  }

  /** The best offset, its bound widened by its age, or undefined before the first sample. */
  best(nowMs: number): ClockOffset | undefined {
    const [newest, ...older] = this.#samples.map((sample) => aged(sample, nowMs))
    if (newest === undefined) return undefined
    return older.reduce((best, sample) => (sample.errorNs < best.errorNs ? sample : best), newest)
  }
}

function aged({ offsetNs, errorNs, takenMs }: Sample, nowMs: number): ClockOffset {
  return { offsetNs, errorNs: errorNs + BigInt(Math.ceil((nowMs - takenMs) * DRIFT_NS_PER_MS)) }
}

function agree(a: ClockOffset, b: ClockOffset): boolean {
  const apartNs = a.offsetNs < b.offsetNs ? b.offsetNs - a.offsetNs : a.offsetNs - b.offsetNs
  return apartNs <= a.errorNs + b.errorNs
}
