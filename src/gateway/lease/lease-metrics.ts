/** Metrics about a program's own leases, and about the use of all devices. */
import type { Metrics } from '../../shared/base/metrics.ts'
import type { DeviceUse } from './lease.ts'
import type { LeaseScheduler } from './lease-scheduler.ts'

export function publishLeases(leases: LeaseScheduler, metrics: Metrics): void {
  metrics.figures(
    'leases',
    'Leases of this program: held, and requests waiting for one',
    ['state'],
    (set) => {
      const { held, waiting } = leases.own
      set(held, { state: 'held' })
      set(waiting, { state: 'waiting' })
    },
  )
  metrics.figures('streams_running', 'Device streams that this program has leases for', [], (set) =>
    set(leases.own.streams),
  )
  metrics.totals(
    'leases_lost_total',
    'Leases whose streams were cut because Redis was unavailable',
    [],
    (set) => set(leases.lost),
  )
  metrics.totals(
    'leases_cancelled_total',
    'Requests that were cancelled in the queue, by what they did then: waiting, streaming',
    ['state'],
    (set) => {
      const { waiting, streaming } = leases.cancelled
      set(waiting, { state: 'waiting' })
      set(streaming, { state: 'streaming' })
    },
  )
  metrics.figures('scheduler_reachable', 'Whether Redis acknowledges heartbeats', [], (set) =>
    set(Number(leases.reachable)),
  )
  metrics.figures(
    'redis_round_trip_seconds',
    'How long Redis took to acknowledge the last heartbeat',
    [],
    (set) => set(leases.roundTripMs / 1_000),
  )
}

/** Across all gateways and workers. */
export function publishDeviceUse(
  leases: LeaseScheduler,
  names: () => readonly string[],
  metrics: Metrics,
): void {
  let use: readonly (DeviceUse & { readonly device: string })[] = []
  metrics.figures(
    'lease_streams',
    'Streams in use and requests waiting by device, across all gateways and workers',
    ['device', 'state'],
    (set) => {
      for (const { device, used, waiting } of use) {
        set(used, { device, state: 'used' })
        set(waiting, { device, state: 'waiting' })
      }
    },
  )
  metrics.figures(
    'device_streams_limit',
    'Temporary limit on the streams of a device, set because it rejected one more; absent: downloads.streamsPerDevice applies',
    ['device'],
    (set) => {
      for (const { device, limit } of use) if (limit !== undefined) set(limit, { device })
    },
  )
  metrics.beforeText(async () => {
    // While Redis is unreachable the last values remain; scheduler_reachable shows it.
    if (!leases.reachable) return
    const devices = names()
    const found = await leases.use(devices).catch(() => undefined)
    use = found?.map((entry, index) => ({ ...entry, device: devices[index] ?? '' })) ?? use
  })
}
