/** Limits events of a kind to a number per second and counts the suppressed ones. Not shared between processes. */
export class PerSecond {
  readonly #max: number
  #beginMs = Number.NEGATIVE_INFINITY
  #taken = 0
  #leftOut = 0

  constructor(max: number) {
    this.#max = max
  }

  /** How many events were suppressed since the last accepted one, or undefined if this one is suppressed too. */
  take(nowMs: number): number | undefined {
    if (nowMs - this.#beginMs >= 1_000) {
      this.#beginMs = nowMs
      this.#taken = 0
    }
    if (this.#taken >= this.#max) {
      this.#leftOut += 1
      return undefined
    }
    this.#taken += 1
    const leftOut = this.#leftOut
    this.#leftOut = 0
    return leftOut
  }

  /** Counts accepted events that are suppressed after all. */
  leaveOut(events: number): void {
    this.#leftOut += events
  }
}
