import { setTimeout as delay } from 'node:timers/promises'
import { CapfleetError } from '../../src/base/error.ts'

/** Where segments come and go in a burst, several looks in a row may each meet another one that goes. */
const TRIES = 20
/** A removal is on record before the files go: a moment later the record is seen. */
const PAUSE_MS = 50

/**
 * Works on what was found in the store, and finds it anew when a segment of it was removed in between.
 * Fails as `find` and `work` do; with store-unavailable when a file stays away that is on record.
 */
export async function onHeld<Found, Result>(
  find: () => Promise<Found>,
  work: (found: Found) => Promise<Result>,
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    const found = await find()
    try {
      return await work(found)
    } catch (error) {
      if (!(error instanceof CapfleetError) || error.code !== 'aged-out') throw error
      if (tries === TRIES) throw new CapfleetError('store-unavailable', error.message, { cause: error })
    }
    await delay(PAUSE_MS)
  }
}
