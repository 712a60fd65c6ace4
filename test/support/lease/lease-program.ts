/**
 * A gateway's scheduler in a separate process, which can be paused as a whole. Its argument contains the settings;
 * each message is an id: a new one requests a stream of the device "a", a granted one releases it. Reports each grant
 * by a message with its id, and exits when its parent has gone.
 */
import type { Lease } from '../../../src/gateway/lease/lease.ts'
import { LeaseScheduler } from '../../../src/gateway/lease/lease-scheduler.ts'
import type { LeaseTimings } from '../../../src/gateway/lease/lease-timings.ts'
import { askLease, giveBack, LEASE_PREFIX, SILENT_LOG } from './lease-user.ts'

export interface LeaseProgramSettings {
  readonly url: string
  readonly replica: string
  readonly streamsPerDevice: number
  readonly timings: LeaseTimings
}

const { url, ...settings } = JSON.parse(process.argv[2] ?? '') as LeaseProgramSettings
const scheduler = await LeaseScheduler.start({
  ...settings,
  redis: { url },
  keyPrefix: LEASE_PREFIX,
  log: SILENT_LOG,
  // Only the parent's scheduler asks the device.
  readersOf: () => Promise.reject(new Error('no answer')),
})
const leases = new Map<string, Lease>()

process.on('message', async (id: string) => {
  const held = leases.get(id)
  leases.delete(id)
  if (held !== undefined) return giveBack(held)
  const lease = await askLease(scheduler, ['a'], { id })
  leases.set(id, lease)
  lease.opened()
  process.send?.(id)
})
process.once('disconnect', () => scheduler.close())
