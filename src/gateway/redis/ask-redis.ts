/** Maps failures of Redis to an error that tells the caller to try again, since the request is not at fault. */
import { CapfleetError } from '../../shared/base/error.ts'

/** Fails with scheduler-unavailable. `what` names what is stored in Redis, in the plural. */
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
