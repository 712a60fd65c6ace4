/** Creates a worker's parts from the gateway's configuration: for the worker program, and for an isolated job. */
import { Quotas } from '../gateway/auth/quotas.ts'
import { publishRoom } from '../gateway/export/export-metrics.ts'
import { ExportOutcomes } from '../gateway/export/export-outcomes.ts'
import type { ExportParts, OrderingRules } from '../gateway/export/export-parts.ts'
import { FleetRoster } from '../gateway/fleet/roster/fleet-roster.ts'
import type { GatewayConfig } from '../gateway/gateway-config.ts'
import { openAudit } from '../gateway/open-audit.ts'
import { openExports, type SharedExports } from '../gateway/open-exports.ts'
import { openFleet, planRoster } from '../gateway/open-fleet.ts'
import { openWorkerRedis } from '../gateway/open-redis.ts'
import { joinScheduler, watchShared } from '../gateway/open-scheduler.ts'
import type { RedisTarget } from '../gateway/redis/redis-connection.ts'
import { SharedClock } from '../gateway/redis/shared-clock.ts'
import { CapfleetError } from '../shared/base/error.ts'
import type { Log } from '../shared/base/log.ts'
import type { Metrics } from '../shared/base/metrics.ts'

export interface WorkerParts {
  readonly parts: ExportParts
  readonly redis: RedisTarget
  readonly roster: FleetRoster
}

export interface WorkerContext {
  /** Relative paths of secret files are resolved against its folder. */
  readonly configPath: string
  readonly log: Log
  readonly metrics: Metrics
  /** Ends the wait for an unreachable Redis. */
  readonly signal: AbortSignal
}

/** Waits for Redis. What is opened ends when `owner` is disposed. Fails with bad-config or scheduler-unavailable. */
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

/** Fails with bad-config if this worker's spool is not the one the others use. */
async function checkSpool({ spool, store }: SharedExports): Promise<void> {
  try {
    await spool.prepare()
  } catch (cause) {
    throw new CapfleetError('bad-config', `exports.spool cannot be used: ${(cause as Error).message}`, {
      cause,
    })
  }
  if (await store.workers.shareSpool(spool.name)) return
  throw new CapfleetError(
    'bad-config',
    `exports.spool: ${spool.path} is not the folder that the other workers use; all workers must share one folder`,
  )
}

function orderingRules({ auth, exports, timeZone, tsModeAliases }: GatewayConfig): OrderingRules {
  const { perUserMax, devicesMax } = exports
  return { users: auth.users, timeZone, tsModeAliases, perUserMax, devicesMax }
}
