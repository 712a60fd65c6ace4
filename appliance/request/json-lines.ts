/** Answers of lines of JSON, whose status is sent before they are known to succeed. */
import { CapfleetError } from '../../src/shared/base/error.ts'
import type { Log } from '../../src/shared/base/log.ts'

export function jsonLine(value: object): string {
  return `${JSON.stringify(value)}\n`
}

/** The lines, and one with the error for a failure that prevents the rest, which is logged as the event. */
export async function* untilFailed(
  lines: AsyncIterable<string>,
  { log, event }: { readonly log: Log; readonly event: string },
): AsyncGenerator<string> {
  try {
    yield* lines
  } catch (error) {
    log.warn(event, { err: error })
    yield failureLine(error)
  }
}

function failureLine(error: unknown): string {
  const [code, detail] =
    error instanceof CapfleetError
      ? [error.code, error.message]
      : ['internal-error', 'the request hit an internal error; the log has the details']
  return jsonLine({ error: { code, detail } })
}
