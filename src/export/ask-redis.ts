/** What becomes of a question to Redis that is not answered: exports wait then, for that is no fault of theirs. */
import { CapfleetError } from '../base/error.ts'

/** Fails with scheduler-unavailable. */
export async function askRedis<Result>(ask: () => Promise<Result>): Promise<Result> {
  try {
    return await ask()
  } catch (cause) {
    throw new CapfleetError(
      'scheduler-unavailable',
      'exports are in Redis, which cannot be reached now; ask again',
      { retryAfterS: 5, cause },
    )
  }
}
