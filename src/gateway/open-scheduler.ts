/** Joins what the programs on one Redis share: the streams of the devices, and the list of devices. */
import type { Log } from '../shared/base/log.ts'
import type { Metrics } from '../shared/base/metrics.ts'
import type { Fleet } from './fleet/fleet.ts'
import { SharedRoster } from './fleet/roster/shared-roster.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { ReadersOf } from './lease/lease-housekeeper.ts'
import { publishLeases } from './lease/lease-metrics.ts'
import { LeaseScheduler } from './lease/lease-scheduler.ts'
import type { RedisTarget } from './redis/redis-connection.ts'
import { RedisWatch } from './redis/redis-watch.ts'

export interface SchedulerParts {
  readonly redis: RedisTarget
  readonly fleet: Fleet
  readonly metrics: Metrics
  readonly log: Log
  /** Whether no other gateway uses this Redis. */
  readonly sole: boolean
}

/** Fails with scheduler-unavailable. */
export async function joinScheduler(
  config: GatewayConfig,
  { redis, fleet, metrics, log, sole }: SchedulerParts,
): Promise<LeaseScheduler> {
  const { streamsPerDevice } = config.downloads
  const { keyPrefix } = config.redis
  const readersOf: ReadersOf = (name) => fleet.readersOf(name)
  const leases = await LeaseScheduler.start({ redis, keyPrefix, streamsPerDevice, log, readersOf, sole })
  publishLeases(leases, metrics)
  return leases
}

/** Watches what the programs on one Redis share, until `owner` is disposed. */
export function watchShared(
  { redis: { keyPrefix } }: GatewayConfig,
  { redis, fleet, metrics, log }: Pick<SchedulerParts, 'redis' | 'fleet' | 'metrics' | 'log'>,
  owner: AsyncDisposableStack,
): void {
  owner.use(new RedisWatch({ redis, keyPrefix, log, metrics }))
  owner.use(new SharedRoster({ fleet, redis, keyPrefix, log, metrics }))
}
