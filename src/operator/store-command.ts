import { resolve } from 'node:path'
import type { StoreFinding } from '../../appliance/link/recorder-protocol.ts'
import { refuseWhereNoStoreIs, withRecorder } from '../../appliance/recorder-session.ts'
import { createProgressBar } from '../client/command/common/progress-bar.ts'
import { CapfleetError } from '../shared/base/error.ts'

/**
 * `capfleet store reindex`: through the store's recorder if one is running, else as the store's writer meanwhile.
 * Ctrl-C ends it; work done by then stays. Fails with bad-parameter, store-full or store-unavailable, and after the
 * last segment with store-corrupt if any could not be read; stderr has named it by then.
 */
export async function reindex({ store }: { readonly store: string }, signal: AbortSignal): Promise<void> {
  const path = resolve(store)
  refuseWhereNoStoreIs(path, 'correct --store')
  const bar = createProgressBar('reindex')
  await withRecorder(path, async (recorder) => {
    const { segments, blocks, newInTables, damages } = await recorder
      .reindex({
        signal,
        onProgress: ({ inputBytes, totalInputBytes }) =>
          bar.update(Number(inputBytes), Number(totalInputBytes)),
      })
      .catch((error: unknown) => {
        bar.clear()
        throw error
      })
    bar.finish(
      `${blocks} blocks of ${segments} segments now have a sieve, and ${newInTables} segments are new in the tables of addresses`,
    )
    for (const damage of damages) process.stderr.write(`reindex: ${damage}\n`)
    if (damages.length === 0) return
    throw new CapfleetError('store-corrupt', `damaged segments (listed above): ${damages.length}`)
  })
}

/**
 * `capfleet store verify`: checks every segment, and prints its findings, one line per damage, on stdout. Through the
 * store's recorder if one is running, else as the store's writer meanwhile. Ctrl-C ends it; repairs made by then stay.
 * Fails with bad-parameter, store-full or store-unavailable, and after the last segment with store-corrupt if damage
 * is left.
 */
export async function verify(
  { store, repair = false }: { readonly store: string; readonly repair?: boolean | undefined },
  signal: AbortSignal,
): Promise<void> {
  const path = resolve(store)
  refuseWhereNoStoreIs(path, 'correct --store')
  const bar = createProgressBar('verify')
  await withRecorder(path, async (recorder) => {
    const { captures, segments, findings } = await recorder
      .verify(repair, {
        signal,
        onProgress: ({ inputBytes, totalInputBytes }) =>
          bar.update(Number(inputBytes), Number(totalInputBytes)),
      })
      .catch((error: unknown) => {
        bar.clear()
        throw error
      })
    const left = findings.filter(({ isRepaired }) => !isRepaired)
    bar.finish(`segments checked: ${segments}, of captures: ${captures}; damages found: ${findings.length}`)
    for (const finding of findings) process.stdout.write(`${findingLine(finding)}\n`)
    if (left.length === 0) return
    const canRepair = !repair && left.some(({ isMarked }) => !isMarked)
    const advice = canRepair ? 'run it with --repair' : 'what is lost cannot be repaired'
    throw new CapfleetError('store-corrupt', `findings that remain (listed above): ${left.length}; ${advice}`)
  })
}

function findingLine({ capture, kind, packets, message, isMarked, isRepaired }: StoreFinding): string {
  const loses = kind === 'block-readable' ? 'can be read again' : 'lost'
  const lost = packets === 0n ? 'no packet lost' : `${packets} packets ${loses}`
  const done = isRepaired ? 'repaired' : 'not repaired'
  return (
    isMarked ? [capture, kind, 'lost before', 'marked', message] : [capture, kind, lost, done, message]
  ).join('\t')
}

/**
 * `capfleet store trust-clock`: makes the recorder of a store compute ages with the clock as it is now. Fails with
 * bad-parameter or store-unavailable.
 */
export async function trustClock({ store }: { readonly store: string }, signal: AbortSignal): Promise<void> {
  const path = resolve(store)
  refuseWhereNoStoreIs(path, 'correct --store')
  const before = await withRecorder(path, (recorder) => recorder.trustClock(signal))
  const now = new Date().toISOString()
  process.stdout.write(
    before === ''
      ? `the clock was already trusted: ${now}\n`
      : `the clock is now trusted (was: ${before}): ${now}\n`,
  )
}
