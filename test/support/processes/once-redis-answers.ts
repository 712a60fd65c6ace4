import { CapfleetError } from '../../../src/shared/base/error.ts'

/** Starts a program again if Redis did not answer within the program's limit, because the machine is busy. */
export async function onceRedisAnswers<Started>(start: () => Promise<Started>): Promise<Started> {
  for (;;) {
    try {
      return await start()
    } catch (error) {
      const isLate = error instanceof CapfleetError && error.code === 'scheduler-unavailable'
      if (!isLate) throw error
    }
  }
}
