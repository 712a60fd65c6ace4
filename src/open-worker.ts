/** Makes a worker's parts from the gateway's configuration: for the worker program, and for a job by itself. */
import { Quotas } from './auth/quotas.ts'
import { CapfleetError } from './base/error.ts'
import type { Log } from './base/log.ts'
import type { Metrics } from './base/metrics.ts'
import { publishRoom } from './export/run/export-metrics.ts'
import { ExportOutcomes } from './export/run/export-outcomes.ts'
import type { ExportParts, OrderingRules } from './export/run/export-parts.ts'
import { FleetRoster } from './fleet/roster/fleet-roster.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { openAudit } from './open-audit.ts'
import { openExports, type SharedExports } from './open-exports.ts'
import { openFleet, planRoster } from './open-fleet.ts'
import { openWorkerRedis } from './open-redis.ts'
import { joinScheduler, watchShared } from './parts.ts'
import type { RedisTarget } from './redis/redis-connection.ts'
import { SharedClock } from './redis/shared-clock.ts'

export interface WorkerParts {
  readonly parts: ExportParts
  readonly redis: RedisTarget
  readonly roster: FleetRoster
}

export interface WorkerContext {
  /** Secrets' files are relative to its folder. */
  readonly configPath: string
  readonly log: Log
  readonly metrics: Metrics
  /** Ends the wait for a Redis that is away. */
  readonly signal: AbortSignal
}

/** Waits for Redis. `owner` ends what is opened. Fails with bad-config or scheduler-unavailable. */
export async function openWorker(
  config: GatewayConfig,
  { configPath, log, metrics, signal }: WorkerContext,
  owner: AsyncDisposableStack,
): Promise<WorkerParts> {
  const audit = await openAudit(config, { kind: 'worker', log, metrics }, owner)
  const redis = await openWorkerRedis(config, { configPath, log, signal }, owner)
  const { keyPrefix } = config.redis
  const clock = owner.use(await SharedClock.start({ redis, keyPrefix, metrics, log }))
  await audit.expireBy(clock)
  const fleet = openFleet(config, metrics, log)
  const leases = await joinScheduler(config, { redis, fleet, metrics, log, sole: false })
  owner.defer(() => leases.close())
  owner.use(fleet)
  const busyOf = async () => new Set<string>()
  const roster = owner.use(new FleetRoster({ fleet, busyOf, log }))
  await roster.configure(await planRoster(config, configPath))
  watchShared(config, { redis, fleet, metrics, log }, owner)
  const shared = await openExports(config, configPath, { redis, clock, log }, owner)
  for (const target of shared.targets.values()) await target.check()
  await checkSpool(shared)
  publishRoom(shared, metrics)
  const { startTimeoutMs, retryPauseMs } = config.downloads
  const outcomes = new ExportOutcomes(metrics)
  const ordering = orderingRules(config)
  const quotas = owner.use(new Quotas({ redis, keyPrefix, log }))
  const parts = {
    ...shared,
    quotas,
    ordering,
    leases,
    fleet,
    audit,
    log,
    outcomes,
    startTimeoutMs,
    retryPauseMs,
  }
  return { parts, redis, roster }
}

/** Fails with bad-config when this worker would look for packets elsewhere than others put them. */
async function checkSpool({ spool, store }: SharedExports): Promise<void> {
  try {
    await spool.prepare()
  } catch (cause) {
    throw new CapfleetError('bad-config', `exports.spool cannot be used: ${(cause as Error).message}`, {
      cause,
    })
  }
  if (await store.sharesSpool(spool.name)) return
  throw new CapfleetError(
    'bad-config',
    `exports.spool: ${spool.path} is not the folder that the other workers use; all of them need one that they share`,
  )
}

function orderingRules({ auth, exports, timeZone, tsModeAliases }: GatewayConfig): OrderingRules {
  const { perUserMax, devicesMax } = exports
  return { users: auth.users, timeZone, tsModeAliases, perUserMax, devicesMax }
}
