import { CapfleetError } from '../../../src/shared/base/error.ts'

/** Starts a program again if Redis did not answer within the program's limit, because the machine is busy. */
export async function onceRedisAnswers<Started>(start: () => Promise<Started>): Promise<Started> {
  for (;;) {
    try {
      return await start()
    } catch (error) {
      if (!isLate(error)) throw error
    }
  }
}

/** The second is ioredis's error, which some parts of a start let pass. */
function isLate(error: unknown): boolean {
  if (error instanceof CapfleetError) return error.code === 'scheduler-unavailable'
  return error instanceof Error && error.message === 'Command timed out'
}
