import type { Log } from '../../shared/base/log.ts'
import type { LeaseEntry } from './lease-entry.ts'
import { schedulerUnavailable } from './lease-failure.ts'
import type { ReadersOf } from './lease-housekeeper.ts'

/**
 * Cuts the streams on devices that cannot report their readers, because after a long silence of Redis others may soon
 * be granted these streams. On a device that counts its readers, they stay in use as long as they run. Calls `onCut`
 * for each lease.
 */
export async function fenceEntries(
  entries: Iterable<LeaseEntry>,
  readersOf: ReadersOf,
  { log, onCut }: { readonly log: Log; readonly onCut: () => void },
): Promise<void> {
  const asked = new Map<string, Promise<boolean>>()
  const isSilent = (device: string): Promise<boolean> => {
    const silent = asked.get(device) ?? cannotTell(device, readersOf)
    asked.set(device, silent)
    return silent
  }
  await Promise.all(
    [...entries].map(async (entry) => {
      if (entry.state !== 'held' || entry.lost.signal.aborted) return
      const { request, lost } = entry
      const silent = await Promise.all(request.devices.map(isSilent))
      if (!silent.includes(true) || lost.signal.aborted) return
      log.error('lease.fenced', { id: request.id, devices: request.devices })
      onCut()
      lost.abort(schedulerUnavailable(new Error('Redis has been unreachable for too long')))
    }),
  )
}

async function cannotTell(device: string, readersOf: ReadersOf): Promise<boolean> {
  try {
    return (await readersOf(device)) === undefined
  } catch {
    return false
  }
}
