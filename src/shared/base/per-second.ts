/** At most so many events of a kind per second; those that are left out are counted. Not shared between processes. */
export class PerSecond {
  readonly #max: number
  #beginMs = Number.NEGATIVE_INFINITY
  #taken = 0
  #leftOut = 0

  constructor(max: number) {
    this.#max = max
  }

  /** How many events were left out since the last one that was taken, or undefined if this one is left out too. */
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

  /** Counts events that were taken and are left out after all. */
  leaveOut(events: number): void {
    this.#leftOut += events
  }
}
