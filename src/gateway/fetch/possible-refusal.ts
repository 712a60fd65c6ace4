/**
 * Third-party devices reject a stream over their limit in ways that look like a failure: text instead of packets, an
 * empty body, a reset or silence. Only a failure to open a stream, or to read its first bytes, can be such a
 * rejection; conclusions that the gateway draws from an answer cannot.
 */
import { CapfleetError, type ErrorCode } from '../../shared/base/error.ts'

const FAILED_TO_OPEN = new WeakSet<CapfleetError>()

const UNSPOKEN: ReadonlySet<ErrorCode> = new Set(['device-protocol', 'device-unreachable', 'device-timeout'])

/** Opens a stream or reads its first bytes. Fails like `ask`, and marks the failure as a possible rejection. */
export async function orRefusal<Answer>(ask: () => Answer | Promise<Answer>): Promise<Answer> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof CapfleetError && UNSPOKEN.has(error.code)) FAILED_TO_OPEN.add(error)
    throw error
  }
}

/** Whether the failure may be the rejection of a stream. */
export function mayBeRefusal(error: unknown): error is CapfleetError {
  return error instanceof CapfleetError && FAILED_TO_OPEN.has(error)
}
