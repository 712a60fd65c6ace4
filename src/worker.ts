/** The worker program: runs exports. It reads the gateway's configuration, and shares its Redis and its devices. */
import { resolve } from 'node:path'
import { ConfigWatch } from './base/config-watch.ts'
import { CapfleetError } from './base/error.ts'
import { createLog, type Log } from './base/log.ts'
import { Metrics } from './base/metrics.ts'
import { ExportOutcomes } from './export/export-outcomes.ts'
import type { OrderingRules } from './export/export-parts.ts'
import { ExportWorker } from './export/export-worker.ts'
import { WORKER_TIMINGS, type WorkerTimings } from './export/worker-timings.ts'
import { FleetRoster } from './fleet/roster/fleet-roster.ts'
import { type GatewayConfig, loadGatewayConfig } from './gateway-config.ts'
import { createHttpApp } from './http/http-app.ts'
import { listen } from './http/http-server.ts'
import { openExports, type SharedExports } from './open-exports.ts'
import { openFleet, planRoster } from './open-fleet.ts'
import { joinScheduler, redisOfConfig } from './parts.ts'
import { checkRedisServer, connectRedis } from './redis/redis-connection.ts'
import { privateRedisSocket } from './redis/redis-server.ts'

export interface RunningWorker {
  /** Where it tells of itself: /livez, /readyz, /metrics. */
  readonly url: string
  /** Takes no job any more; those that run go on elsewhere. */
  close(): Promise<void>
  /** Takes over the devices of a changed configuration. */
  reload(changed: GatewayConfig): Promise<void>
}

export interface WorkerOptions {
  /** Secrets' files are relative to its folder. */
  readonly configPath: string
  readonly log?: Log
  readonly timings?: WorkerTimings
}

/** Takes jobs when it resolves. Fails with bad-config or scheduler-unavailable. */
export async function startWorker(config: GatewayConfig, options: WorkerOptions): Promise<RunningWorker> {
  const { configPath, timings = WORKER_TIMINGS } = options
  const log = options.log ?? createLog('worker', config.logLevel)
  await using building = new AsyncDisposableStack()
  const metrics = new Metrics()
  const redis = (await redisOfConfig(config, configPath)) ?? { url: await privateRedisSocket(config.home) }
  const checking = connectRedis(redis, 'commands', log)
  await checkRedisServer(checking).finally(() => checking.disconnect())
  const fleet = openFleet(config, metrics, log)
  const leases = await joinScheduler(config, { redis, fleet, log, sole: false })
  building.defer(() => leases.close())
  building.use(fleet)
  const busyOf = async () => new Set<string>()
  const roster = building.use(new FleetRoster({ fleet, busyOf, log }))
  await roster.configure(await planRoster(config, configPath))
  const shared = await openExports(config, configPath, { redis, log }, building)
  for (const target of shared.targets.values()) await target.check()
  await checkSpool(shared)
  const { startTimeoutMs, retryPauseMs } = config.downloads
  const outcomes = new ExportOutcomes(metrics)
  const ordering = orderingRules(config)
  const parts = { ...shared, ordering, leases, fleet, log, outcomes, startTimeoutMs, retryPauseMs }
  const { keyPrefix } = config.redis
  const { fetches, writes } = config.exports.worker
  const worker = building.use(
    new ExportWorker(parts, { redis, keyPrefix, metrics, fetches, writes, timings }),
  )
  await worker.start()
  const server = await listen(tellOfItself(metrics, log), config.exports.worker.listen, metrics)
  building.defer(() => server.close(0))
  log.info('worker.ready', { url: server.url, devices: fleet.devices.length })
  const owned = building.move()
  let ending: Promise<void> | undefined
  return {
    url: server.url,
    reload: async (changed) => roster.configure(await planRoster(changed, configPath)),
    close: () => {
      ending ??= owned.disposeAsync().then(() => log.info('worker.stopped'))
      return ending
    },
  }
}

/** Fails with bad-config when this worker would look for packets elsewhere than others put them. */
async function checkSpool({ spool, store }: SharedExports): Promise<void> {
  let name: string
  try {
    name = await spool.prepare()
  } catch (cause) {
    throw new CapfleetError('bad-config', `exports.spool cannot be used: ${(cause as Error).message}`, {
      cause,
    })
  }
  if (await store.sharesSpool(name)) return
  throw new CapfleetError(
    'bad-config',
    `exports.spool: ${spool.path} is not the folder that the other workers use; all of them need one that they share`,
  )
}

function orderingRules({ auth, exports, timeZone, tsModeAliases }: GatewayConfig): OrderingRules {
  const { perUserMax, devicesMax } = exports
  return { users: auth.users, timeZone, tsModeAliases, perUserMax, devicesMax }
}

/** For the command line: `address` is printed when ready. */
export async function startWorkerFromFile(path: string) {
  const config = await loadGatewayConfig(path)
  const configPath = resolve(path)
  const log = createLog('worker', config.logLevel)
  const worker = await startWorker(config, { configPath, log })
  const reload = async () => worker.reload(await loadGatewayConfig(configPath))
  const watch = await ConfigWatch.start({ path: configPath, reload, log })
  const close = async () => {
    await watch.close()
    await worker.close()
  }
  return { address: worker.url, drainMs: 0, close }
}

/** For whoever runs it. What it tells is no secret, and it listens on this machine alone unless told otherwise. */
function tellOfItself(metrics: Metrics, log: Log) {
  const app = createHttpApp({ log, metrics })
  app.use(async (ctx) => {
    if (ctx.path === '/livez' || ctx.path === '/readyz') ctx.body = 'ok\n'
    if (ctx.path !== '/metrics') return
    ctx.type = metrics.contentType
    ctx.body = await metrics.text(async () => undefined)
  })
  return app.callback()
}
