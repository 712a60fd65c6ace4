import { resolve } from 'node:path'
import { refuseWhereNoStoreIs, withRecorder } from '../../appliance/recorder-session.ts'
import { CapfleetError } from '../base/error.ts'
import { createProgressBar } from './progress-bar.ts'

/**
 * `capfleet store reindex`: through the store's recorder when one runs, else as its writer meanwhile.
 * Ctrl-C ends it; what was done by then stays. Fails with bad-parameter, store-full or
 * store-unavailable, and after the last segment with store-corrupt when any could not be read; stderr
 * has named it by then.
 */
export async function reindex({ store }: { readonly store: string }, signal: AbortSignal): Promise<void> {
  const path = resolve(store)
  refuseWhereNoStoreIs(path, 'correct --store')
  const bar = createProgressBar('reindex')
  await withRecorder(path, async (recorder) => {
    const { segments, blocks, damages } = await recorder
      .reindex({
        signal,
        onProgress: ({ inputBytes, totalInputBytes }) =>
          bar.update(Number(inputBytes), Number(totalInputBytes)),
      })
      .catch((error: unknown) => {
        bar.clear()
        throw error
      })
    bar.finish(`${blocks} blocks of ${segments} segments have a sieve now that had none`)
    for (const damage of damages) process.stderr.write(`reindex: ${damage}\n`)
    if (damages.length === 0) return
    throw new CapfleetError('store-corrupt', `damaged segments, named above: ${damages.length}`)
  })
}

/**
 * `capfleet store trust-clock`: has the recorder of a store count ages by the clock as it is now. Fails with
 * bad-parameter or store-unavailable.
 */
export async function trustClock({ store }: { readonly store: string }, signal: AbortSignal): Promise<void> {
  const path = resolve(store)
  refuseWhereNoStoreIs(path, 'correct --store')
  const before = await withRecorder(path, (recorder) => recorder.trustClock(signal))
  const now = new Date().toISOString()
  process.stdout.write(
    before === ''
      ? `the clock was trusted already: ${now}\n`
      : `the clock is trusted now (was: ${before}): ${now}\n`,
  )
}
