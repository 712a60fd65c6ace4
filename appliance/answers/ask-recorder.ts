import { CapfleetError } from '../../src/shared/base/error.ts'
import type { RecorderClient } from '../link/recorder-client.ts'

/** More than starting or stopping a capture takes, which must flush the last blocks to disk. */
const LIMIT_MS = 20_000
/** A question is answered from memory, immediately. */
export const QUESTION_LIMIT_MS = 2_000

/**
 * Sends a command on behalf of a request, or a question, which has QUESTION_LIMIT_MS. Fails with store-unavailable if
 * the recorder does not answer.
 */
export async function askRecorder<Answer>(
  recorder: RecorderClient,
  ask: (recorder: RecorderClient, signal: AbortSignal) => Promise<Answer>,
  limitMs = LIMIT_MS,
): Promise<Answer> {
  const limit = AbortSignal.timeout(limitMs)
  try {
    return await ask(recorder, limit)
  } catch (error) {
    if (error !== limit.reason) throw error
    throw new CapfleetError(
      'store-unavailable',
      `the recorder is running but did not answer within ${limitMs / 1_000} s: it is stopped or busy; check its log`,
      { cause: error },
    )
  }
}
