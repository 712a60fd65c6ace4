/** What becomes of a question to Redis that is not answered: whoever asked may ask again, for that is no fault of theirs. */
import { CapfleetError } from '../../shared/base/error.ts'

/** Fails with scheduler-unavailable. `what` is kept in Redis, in the plural. */
export async function askRedis<Result>(ask: () => Promise<Result>, what = 'exports'): Promise<Result> {
  try {
    return await ask()
  } catch (cause) {
    throw new CapfleetError(
      'scheduler-unavailable',
      `${what} are in Redis, which cannot be reached now; ask again`,
      { retryAfterS: 5, cause },
    )
  }
}
