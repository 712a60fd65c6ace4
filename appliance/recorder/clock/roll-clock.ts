import type { RollConfig } from '../../settings/capture-config.ts'
import { nextTimeOfDay } from '../../settings/schedule-rows.ts'

export interface RollClockOptions {
  readonly roll: RollConfig
  /** IANA name: the zone of `at`. */
  readonly timeZone: string
  /** The age of the capture: how long it has been running. */
  readonly ageMs: number
  readonly nowMs: number
  /** Reading of a clock that never steps. */
  readonly monotonicMs: number
}

/** When a capture is to be rolled: at the earliest of its settings. */
export class RollClock {
  readonly #roll: RollConfig
  /** By the wall clock. A clock that is set back causes no second roll on the same day. */
  readonly #atMs: number
  /** When the capture is old enough, by the clock that never steps. */
  readonly #ageEndMs: number

  constructor({ roll, timeZone, ageMs, nowMs, monotonicMs }: RollClockOptions) {
    this.#roll = roll
    this.#atMs =
      roll.at === undefined ? Number.POSITIVE_INFINITY : nextTimeOfDay(roll.at, timeZone, nowMs - ageMs)
    this.#ageEndMs = monotonicMs - ageMs + (roll.everySeconds ?? Number.POSITIVE_INFINITY) * 1_000
  }

  isDue(now: { readonly nowMs: number; readonly monotonicMs: number; readonly bytes: bigint }): boolean {
    const { everyBytes = Number.POSITIVE_INFINITY } = this.#roll
    return now.nowMs >= this.#atMs || now.monotonicMs >= this.#ageEndMs || Number(now.bytes) >= everyBytes
  }
}
