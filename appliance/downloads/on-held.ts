import { setTimeout as delay } from 'node:timers/promises'
import { CapfleetError } from '../../src/shared/base/error.ts'

/** If segments come and go in a burst, several attempts in a row may each find another one removed. */
const TRIES = 20
/** A removal is recorded before the files are removed, so the record is visible a moment later. */
const PAUSE_MS = 50

/**
 * Works on what was found in the store, and looks it up again if one of its segments was removed in between. A segment
 * whose files stay missing although the log lists it is lost: `lose` marks such segments in what was found, so that
 * the work counts them and leaves nothing else out. Fails like `find` and `work`; with store-unavailable if nothing
 * can be marked.
 */
export async function onHeld<Found, Result>(
  find: () => Promise<Found>,
  work: (found: Found) => Promise<Result>,
  lose?: (found: Found) => Promise<Found>,
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    const found = await find()
    try {
      return await work(found)
    } catch (error) {
      if (!isRemoved(error)) throw error
      if (tries === TRIES) return await workOnRest(found, work, lose, error)
    }
    await delay(PAUSE_MS)
  }
}

async function workOnRest<Found, Result>(
  found: Found,
  work: (found: Found) => Promise<Result>,
  lose: ((found: Found) => Promise<Found>) | undefined,
  cause: CapfleetError,
): Promise<Result> {
  try {
    if (lose !== undefined) return await work(await lose(found))
  } catch (error) {
    if (!isRemoved(error)) throw error
  }
  throw new CapfleetError('store-unavailable', cause.message, { cause })
}

function isRemoved(error: unknown): error is CapfleetError {
  return error instanceof CapfleetError && error.code === 'aged-out'
}
