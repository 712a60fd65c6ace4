/** A device that reports more is not read any faster; it keeps the rest. */
const EVENTS_PER_S = 50
const BURST_EVENTS = 500
const MS_PER_S = 1_000

/** How long to pause reading the events of a device, so that none exceeds its share of the gateway's time. */
export class EventPace {
  readonly #nowMs: () => number
  #events = BURST_EVENTS
  #sinceMs: number

  constructor(nowMs = () => performance.now()) {
    this.#nowMs = nowMs
    this.#sinceMs = nowMs()
  }

  /** How long to pause. Call this after `events` were read. */
  pauseMs(events: number): number {
    const nowMs = this.#nowMs()
    const earned = ((nowMs - this.#sinceMs) / MS_PER_S) * EVENTS_PER_S
    this.#events = Math.min(BURST_EVENTS, this.#events + earned) - events
    this.#sinceMs = nowMs
    return Math.max(0, (-this.#events / EVENTS_PER_S) * MS_PER_S)
  }
}
