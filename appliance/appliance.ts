/** The appliance: a device's HTTP API over its store. */
import type { RequestListener } from 'node:http'
import { authenticate } from '../src/base/basic-auth.ts'
import { CapfleetError } from '../src/base/error.ts'
import { createHttpApp } from '../src/base/http-app.ts'
import { listen } from '../src/base/http-server.ts'
import { createLog, type Log } from '../src/base/log.ts'
import { Metrics } from '../src/base/metrics.ts'
import { type Role, UsersFile } from '../src/base/users-file.ts'
import { type ApplianceConfig, loadApplianceConfig } from './appliance-config.ts'
import type { ApplianceContext, ApplianceParts } from './appliance-parts.ts'
import { routeOf } from './appliance-routes.ts'
import { CaptureCatalogue } from './capture-catalogue.ts'
import { registerCaptureMetrics } from './capture-metrics.ts'
import { DownloadMetrics } from './download-metrics.ts'
import { EventFeed } from './event-feed.ts'
import { EventMetrics } from './event-metrics.ts'
import { FilterCompiler } from './filter-compiler.ts'
import { FlushWatch } from './flush-watch.ts'
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
  /** Takes no new download, lets running ones end for `drainMs`, then cuts the rest. */
  close(drainMs: number): Promise<void>
}

/** Paths in `config` are absolute. Fails with bad-config, also when there is no user. */
export async function startAppliance(
  config: ApplianceConfig,
  options: { readonly log?: Log } = {},
): Promise<RunningAppliance> {
  const log = options.log ?? createLog('appliance', config.logLevel)
  const users = await UsersFile.load(config.auth.users)
  const draining = new AbortController()
  const parts = await createParts(config, log, draining.signal)
  using starting = new DisposableStack()
  starting.use(parts.sensors)
  starting.use(parts.events)
  const server = await listen(createHandler(parts, users), config.listen)
  const owned = starting.move()
  log.info('appliance.started', { url: server.url, store: config.store })
  return {
    url: server.url,
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
  const appliance = await startAppliance(config)
  return { ...appliance, address: appliance.url, drainMs: config.downloads.drainMs }
}

async function createParts(
  config: ApplianceConfig,
  log: Log,
  draining: AbortSignal,
): Promise<ApplianceParts> {
  const metrics = new Metrics()
  const slots = new StreamLimit()
  const catalogue = new CaptureCatalogue(storePaths(config.store), log)
  const recorder = new RecorderClient(config.store)
  const sensors = await SystemSensors.start({ config, recorder, catalogue, slots })
  const live = new LiveLimit()
  registerCaptureMetrics(metrics, sensors)
  const eventMetrics = new EventMetrics(metrics, live)
  return {
    config,
    log,
    metrics,
    catalogue,
    compiler: new FilterCompiler(),
    regexCompiler: new RegexCompiler(),
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
function neededForSystem(ctx: ApplianceContext, anonymousSystem: boolean): Role | 'open' {
  if (asksForLeases(ctx)) return 'user'
  return anonymousSystem ? 'open' : 'viewer'
}

function createHandler(parts: ApplianceParts, users: UsersFile): RequestListener {
  const app = createHttpApp(parts)
  const { anonymousSystem } = parts.config.auth
  app.use(async (ctx) => {
    const { role, handler } = routeOf(ctx.method, ctx.path)
    const needed = role === 'system' ? neededForSystem(ctx, anonymousSystem) : role
    if (needed !== 'open') await authenticate(ctx.state, ctx.req.headers.authorization, needed, users)
    await handler(parts, ctx)
  })
  return app.callback()
}
