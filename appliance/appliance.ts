/** The appliance: a device's HTTP API over its store. */
import type { RequestListener } from 'node:http'
import { authenticate, recognize } from '../src/base/basic-auth.ts'
import { ConfigWatch } from '../src/base/config-watch.ts'
import { CapfleetError } from '../src/base/error.ts'
import { createHttpApp } from '../src/base/http-app.ts'
import { listen } from '../src/base/http-server.ts'
import { createLog, type Log } from '../src/base/log.ts'
import { LoginGate } from '../src/base/login-gate.ts'
import { Metrics } from '../src/base/metrics.ts'
import { UsersFile } from '../src/base/users-file.ts'
import { type ApplianceConfig, loadApplianceConfig } from './appliance-config.ts'
import type { ApplianceContext, ApplianceParts } from './appliance-parts.ts'
import { type ApplianceRoute, routeOf } from './appliance-routes.ts'
import { CaptureCatalogue } from './capture-catalogue.ts'
import { registerCaptureMetrics } from './capture-metrics.ts'
import { registerCompileMetrics } from './compile-metrics.ts'
import { CompileQueue } from './compile-queue.ts'
import { DownloadMetrics } from './download-metrics.ts'
import { EventFeed } from './event-feed.ts'
import { EventMetrics } from './event-metrics.ts'
import { FilterCompiler } from './filter-compiler.ts'
import { FlushWatch } from './flush-watch.ts'
import { hideStorePath } from './hidden-path.ts'
import { asksForLeases } from './lease-headers.ts'
import { LiveLimit } from './live-limit.ts'
import { lowerPriority } from './reader-priority.ts'
import { RecorderClient } from './recorder-client.ts'
import { RegexCompiler } from './regex-compiler.ts'
import { storePaths } from './store-paths.ts'
import { StreamLimit } from './stream-limit.ts'
import { SystemSensors } from './system-status/system-sensors.ts'

export interface RunningAppliance {
  /** Without a final slash. */
  readonly url: string
  /** As UsersFile.reload. */
  reloadUsers(): Promise<void>
  /** Takes no new download, lets running ones end for `drainMs`, then cuts the rest. */
  close(drainMs: number): Promise<void>
}

/** Paths in `config` are absolute. Fails with bad-config, also when there is no user. */
export async function startAppliance(
  config: ApplianceConfig,
  options: { readonly log?: Log } = {},
): Promise<RunningAppliance> {
  const log = options.log ?? createLog('appliance', config.logLevel)
  const metrics = new Metrics()
  const users = await UsersFile.load(config.auth.users, new LoginGate(config.auth.logins, metrics))
  const draining = new AbortController()
  const parts = await createParts(config, { log, metrics, draining: draining.signal })
  using starting = new DisposableStack()
  starting.use(parts.sensors)
  starting.use(parts.events)
  const server = await listen(createHandler(parts, users), config.listen, metrics)
  const owned = starting.move()
  log.info('appliance.started', { url: server.url, store: config.store })
  return {
    url: server.url,
    reloadUsers: () => users.reload(),
    async close(drainMs) {
      draining.abort(
        new CapfleetError('draining', 'the appliance is shutting down; try again', { retryAfterS: 5 }),
      )
      await server.close(drainMs)
      owned.dispose()
      log.info('appliance.stopped')
    },
  }
}

/** For the command line. */
export async function startApplianceFromFile(
  configPath: string,
): Promise<RunningAppliance & { readonly address: string; readonly drainMs: number }> {
  const config = await loadApplianceConfig(configPath)
  if (config.priority.readers === 'low') await lowerPriority()
  const log = createLog('appliance', config.logLevel)
  const appliance = await startAppliance(config, { log })
  const watch = await ConfigWatch.start({ path: config.auth.users, reload: appliance.reloadUsers, log })
  const close = async (drainMs: number) => {
    await watch.close()
    await appliance.close(drainMs)
  }
  return { ...appliance, close, address: appliance.url, drainMs: config.downloads.drainMs }
}

async function createParts(
  config: ApplianceConfig,
  { log, metrics, draining }: Pick<ApplianceParts, 'log' | 'metrics' | 'draining'>,
): Promise<ApplianceParts> {
  const slots = new StreamLimit()
  const catalogue = new CaptureCatalogue(storePaths(config.store), log)
  const recorder = new RecorderClient(config.store)
  const sensors = await SystemSensors.start({ config, recorder, catalogue, slots })
  const live = new LiveLimit(config.events)
  const compiles = new CompileQueue(config.filters)
  registerCaptureMetrics(metrics, sensors)
  registerCompileMetrics(metrics, compiles)
  const eventMetrics = new EventMetrics(metrics, live)
  return {
    config,
    log,
    metrics,
    catalogue,
    compiler: new FilterCompiler(compiles),
    regexCompiler: new RegexCompiler(compiles),
    slots,
    recorder,
    flushes: new FlushWatch(recorder),
    downloads: new DownloadMetrics(metrics, slots),
    sensors,
    events: await EventFeed.open({
      storePath: config.store,
      log,
      onEvent: (event) => eventMetrics.happened(event),
    }),
    live,
    draining,
  }
}

/** Leases are the business of those who download. */
function neededRole({ role }: ApplianceRoute, ctx: ApplianceContext, auth: ApplianceConfig['auth']) {
  if (role === 'metrics') return auth.anonymousMetrics ? 'open' : 'viewer'
  if (role !== 'system') return role
  if (asksForLeases(ctx)) return 'user'
  return auth.anonymousSystem ? 'open' : 'viewer'
}

function createHandler(parts: ApplianceParts, users: UsersFile): RequestListener {
  const app = createHttpApp(parts)
  app.use(hideStorePath(parts))
  app.use(async (ctx) => {
    const route = routeOf(ctx.method, ctx.path)
    const needed = neededRole(route, ctx, parts.config.auth)
    if (needed === 'open') await recognize(ctx, users)
    else await authenticate(ctx, needed, users)
    await route.handler(parts, ctx)
  })
  return app.callback()
}
