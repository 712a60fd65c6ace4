import { statSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { CapfleetError } from '../src/shared/base/error.ts'
import { createLog } from '../src/shared/base/log.ts'
import { RecorderClient } from './link/recorder-client.ts'
import { startRecorder } from './recorder.ts'
import { storePaths } from './store/store-paths.ts'

/** A recorder that is just starting holds the lock before it listens. */
const START_ATTEMPTS = 20
const START_RETRY_MS = 100

/**
 * Runs `work` with the store's recorder: the running one, or else one in this process for the duration of the work.
 * Creates the store if it does not exist. Fails with store-unavailable.
 */
export async function withRecorder<Result>(
  storePath: string,
  work: (recorder: RecorderClient) => Promise<Result>,
): Promise<Result> {
  const client = new RecorderClient(storePath)
  const own = await startUnlessRunning(storePath, client)
  try {
    return await work(client)
  } finally {
    await own?.close()
  }
}

/**
 * For callers of withRecorder() that want no new store: a misspelt path would create one that no appliance serves.
 * Fails with bad-parameter; `mend` says what the user can do.
 */
export function refuseWhereNoStoreIs(store: string, mend: string): void {
  const isMissing = statSync(storePaths(store).format, { throwIfNoEntry: false }) === undefined
  if (!isMissing) return
  throw new CapfleetError('bad-parameter', `there is no store at ${store}; ${mend}`, { param: '--store' })
}

async function startUnlessRunning(
  storePath: string,
  client: RecorderClient,
): Promise<{ close(): Promise<void> } | undefined> {
  for (let attempt = 1; ; attempt++) {
    if (await isRunning(client)) return undefined
    try {
      return await startRecorder({ storePath, log: createLog('recorder', 'warn') })
    } catch (error) {
      if (attempt === START_ATTEMPTS) throw error
      await delay(START_RETRY_MS)
    }
  }
}

async function isRunning(client: RecorderClient): Promise<boolean> {
  try {
    await client.info()
    return true
  } catch (error) {
    if (error instanceof CapfleetError && error.code === 'store-unavailable') return false
    throw error
  }
}
