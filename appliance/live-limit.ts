import { CapfleetError } from '../src/base/error.ts'

/** Each costs a little memory and, with telemetry, a little time every second. */
export const LIVE_ANSWERS_MAX = 64

const RETRY_AFTER_S = 10

/** How many clients may follow events and telemetry at once. */
export class LiveLimit {
  #used = 0

  get used(): number {
    return this.#used
  }

  /** A place until dispose. Fails with event-streams-exhausted when none is free. */
  take(): Disposable {
    if (this.#used >= LIVE_ANSWERS_MAX) {
      throw new CapfleetError(
        'event-streams-exhausted',
        `${LIVE_ANSWERS_MAX} clients follow events or telemetry already; end one of them or try again later`,
        { retryAfterS: RETRY_AFTER_S },
      )
    }
    this.#used += 1
    let isHeld = true
    return {
      [Symbol.dispose]: () => {
        if (isHeld) this.#used -= 1
        isHeld = false
      },
    }
  }
}
