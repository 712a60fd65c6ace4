/** The parts of exports that gateway and worker share: targets, store and queue. */
import { join } from 'node:path'
import type { Log } from '../shared/base/log.ts'
import type { SharedTime } from '../shared/base/shared-time.ts'
import { ExportJobs } from './export/export-jobs.ts'
import type { ExportLimits, ExportParts } from './export/export-parts.ts'
import { ExportStore } from './export/export-store.ts'
import { ScheduleStore } from './export/schedule-store.ts'
import { Spool } from './export/spool.ts'
import { openTargets } from './export/target/export-targets.ts'
import type { GatewayConfig } from './gateway-config.ts'
import type { RedisTarget } from './redis/redis-connection.ts'

export type SharedExports = Pick<
  ExportParts,
  'store' | 'schedules' | 'clock' | 'jobs' | 'spool' | 'targets' | 'limits'
>

/** Target of exports if the configuration names none. */
const OWN_TARGET = 'local'

/** How many bytes may have to be fetched again if a worker dies. */
const CHECKPOINT_BYTES = 32 * 1_048_576
const LEASE_WAIT_MS = 20_000
const FULL_PAUSE_MS = 5_000

/** What is opened ends when `owner` is disposed. Fails with bad-config. */
export async function openExports(
  config: GatewayConfig,
  configPath: string,
  { redis, clock, log }: { readonly redis: RedisTarget; readonly clock: SharedTime; readonly log: Log },
  owner: AsyncDisposableStack,
): Promise<SharedExports> {
  const { keyPrefix } = config.redis
  const { targets, spool } = config.exports
  const own = { name: OWN_TARGET, type: 'directory' as const, path: join(config.home, 'exports') }
  return {
    store: owner.use(new ExportStore({ redis, keyPrefix, log })),
    clock,
    schedules: owner.use(new ScheduleStore({ redis, keyPrefix, log })),
    jobs: owner.use(new ExportJobs({ redis, keyPrefix, log })),
    spool: new Spool(spool ?? join(config.home, 'spool')),
    targets: await openTargets(targets.length > 0 ? targets : [own], configPath),
    limits: limitsOf(config),
  }
}

function limitsOf({ exports: { deviceRetryS, keepS, ...rest }, control }: GatewayConfig): ExportLimits {
  return {
    spanBytes: rest.spanBytes,
    checkpointBytes: Math.min(CHECKPOINT_BYTES, rest.spanBytes),
    deviceRetryMs: deviceRetryS * 1_000,
    keepMs: keepS * 1_000,
    keepBytes: rest.keepBytes,
    estimateTimeoutMs: control.probeTimeoutMs,
    leaseWaitMs: LEASE_WAIT_MS,
    fullPauseMs: FULL_PAUSE_MS,
  }
}
