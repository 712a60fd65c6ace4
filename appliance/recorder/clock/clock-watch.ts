import type { EventSink } from '../../events/event-log.ts'

/** Two clocks of the machine, in nanoseconds. */
export interface Clocks {
  /** CLOCK_REALTIME, which stamps packets. May step. */
  realtimeNs(): bigint
  /** CLOCK_MONOTONIC: runs at the same rate, never steps. */
  monotonicNs(): bigint
}

export interface ClockWatchOptions {
  readonly clocks: Clocks
  readonly events: EventSink
}

const INTERVAL_MS = 1_000
/** More than the apparent difference from reading the two clocks one after another. */
const STEP_MIN_NS = 1_000_000n
/** A reading during which the process was suspended for longer is useless. */
const READING_MAX_NS = 200_000n
const READINGS = 10

/**
 * Detects when the clock that stamps packets is set, forward or back, which makes their times jump. Correcting only
 * its rate is not a step, because both clocks run at the same rate.
 */
export class ClockWatch implements Disposable {
  readonly #options: ClockWatchOptions
  #offsetNs: bigint | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(options: ClockWatchOptions) {
    this.#options = options
    this.#offsetNs = this.#readOffset()
  }

  static start(options: ClockWatchOptions): ClockWatch {
    const watch = new ClockWatch(options)
    watch.#timer = setInterval(() => watch.check(), INTERVAL_MS).unref()
    return watch
  }

  /** Compares the clocks now. */
  check(): void {
    const offsetNs = this.#readOffset()
    if (offsetNs === undefined) return
    const stepNs = offsetNs - (this.#offsetNs ?? offsetNs)
    this.#offsetNs = offsetNs
    if (stepNs < STEP_MIN_NS && stepNs > -STEP_MIN_NS) return
    this.#options.events.append('clock-stepped', {
      stepNs: String(stepNs),
      nowNs: String(this.#options.clocks.realtimeNs()),
    })
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  /** How far the clock is ahead of the monotonic one, or undefined if the machine is too busy to measure it. */
  #readOffset(): bigint | undefined {
    const { clocks } = this.#options
    for (let i = 0; i < READINGS; i++) {
      const beforeNs = clocks.monotonicNs()
      const realtimeNs = clocks.realtimeNs()
      const tookNs = clocks.monotonicNs() - beforeNs
      if (tookNs <= READING_MAX_NS) return realtimeNs - beforeNs - tookNs / 2n
    }
    return undefined
  }
}
