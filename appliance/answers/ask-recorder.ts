import { CapfleetError } from '../../src/base/error.ts'
import type { RecorderClient } from '../link/recorder-client.ts'

/** More than starting or stopping a capture takes: the last blocks have to reach the disk. */
const LIMIT_MS = 20_000

/** A command on behalf of a request. Fails with store-unavailable when the recorder does not answer. */
export async function askRecorder<Answer>(
  recorder: RecorderClient,
  ask: (recorder: RecorderClient, signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const limit = AbortSignal.timeout(LIMIT_MS)
  try {
    return await ask(recorder, limit)
  } catch (error) {
    if (error !== limit.reason) throw error
    throw new CapfleetError('store-unavailable', `the recorder did not answer within ${LIMIT_MS / 1000} s`, {
      cause: error,
    })
  }
}
