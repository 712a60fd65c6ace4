/** The appliance: a device's HTTP API over its store. */
import type { RequestListener } from 'node:http'
import { hasMachineCode } from '../native/addon.ts'
import { admit } from '../src/shared/auth/authenticate.ts'
import { LoginGate } from '../src/shared/auth/login-gate.ts'
import { UsersFile } from '../src/shared/auth/users-file.ts'
import { ConfigWatch } from '../src/shared/base/config-watch.ts'
import { CapfleetError } from '../src/shared/base/error.ts'
import { FairLimit } from '../src/shared/base/fair-limit.ts'
import { createLog, type Log } from '../src/shared/base/log.ts'
import { Metrics } from '../src/shared/base/metrics.ts'
import { isInsecure } from '../src/shared/base/setting-schemas.ts'
import { refuseMisspelt } from '../src/shared/contract/refuse-misspelt.ts'
import { takeForm } from '../src/shared/http/form-body.ts'
import { createHttpApp } from '../src/shared/http/http-app.ts'
import { listen } from '../src/shared/http/http-server.ts'
import { LiveLimit } from '../src/shared/http/live-limit.ts'
import { RunningUploads } from '../src/shared/http/running-uploads.ts'
import { pathsOf } from '../src/shared/http/server-certificate.ts'
import { registerCaptureMetrics } from './answers/capture-metrics.ts'
import { registerMachineMetrics } from './answers/machine-metrics.ts'
import { SegmentProfiles } from './answers/segment-profiles.ts'
import { type ApplianceConfig, loadApplianceConfig } from './appliance-config.ts'
import type { ApplianceParts } from './appliance-parts.ts'
import { routeOf } from './appliance-routes.ts'
import { registerCompileMetrics } from './compile/compile-metrics.ts'
import { CompileQueue } from './compile/compile-queue.ts'
import { FilterCompiler } from './compile/filter-compiler.ts'
import { RegexCompiler } from './compile/regex-compiler.ts'
import { DamageReports } from './downloads/damage-reports.ts'
import { DownloadMetrics } from './downloads/download-metrics.ts'
import { FlushWatch } from './downloads/flush-watch.ts'
import { lowerPriority } from './downloads/reader-priority.ts'
import { StreamLimit } from './downloads/stream-limit.ts'
import { EventFeed } from './events/event-feed.ts'
import { EventMetrics } from './events/event-metrics.ts'
import { RecorderClient } from './link/recorder-client.ts'
import { storeIdentity } from './machine/store-identity.ts'
import { hideStorePath } from './request/hidden-path.ts'
import { CaptureCatalogue } from './store/capture-catalogue.ts'
import { storePaths } from './store/store-paths.ts'
import { SystemSensors } from './system-status/system-sensors.ts'

/** Searches for addresses that may run at once; each reads indexes and tables of the whole range. */
const SEARCHES = 2

export interface RunningAppliance {
  /** Without a trailing slash. */
  readonly url: string
  /** As UsersFile.reload. */
  reloadUsers(): Promise<void>
  /** As RunningServer.reloadCertificate. */
  reloadCertificate(): Promise<void>
  /** Accepts no new downloads, lets running ones finish for `drainMs`, then cuts the rest. */
  close(drainMs: number): Promise<void>
}

/** Paths in `config` are absolute. Fails with bad-config, also if there is no user. */
export async function startAppliance(
  config: ApplianceConfig,
  options: { readonly log?: Log } = {},
): Promise<RunningAppliance> {
  const log = options.log ?? createLog('appliance', config.logLevel)
  const metrics = new Metrics()
  const users = await UsersFile.load(config.auth.users, new LoginGate(config.auth.logins, metrics), {
    bounds: false,
  })
  const draining = new AbortController()
  const parts = await createParts(config, { log, metrics, draining: draining.signal })
  using starting = new DisposableStack()
  starting.use(parts.sensors)
  starting.use(parts.events)
  const server = await listen(createHandler(parts, users), config.listen, metrics)
  const owned = starting.move()
  if (isInsecure(config.listen)) log.warn('listen.insecure', { url: server.url })
  if (!hasMachineCode()) {
    log.warn('filters.slow', { needs: 'x86-64, and permission to make memory executable' })
  }
  log.info('appliance.started', { url: server.url, store: config.store })
  return {
    url: server.url,
    reloadUsers: () => users.reload(),
    reloadCertificate: server.reloadCertificate,
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

/** The program for the command line: users and certificates are read again when their files change. */
export async function startApplianceFromFile(
  configPath: string,
): Promise<RunningAppliance & { readonly address: string; readonly drainMs: number }> {
  const config = await loadApplianceConfig(configPath)
  if (config.priority.readers === 'low') await lowerPriority()
  const log = createLog('appliance', config.logLevel)
  const appliance = await startAppliance(config, { log })
  const { tls } = config.listen
  const watches = await Promise.all([
    ConfigWatch.start({ paths: [config.auth.users], reload: appliance.reloadUsers, log }),
    ...(tls ? [ConfigWatch.start({ paths: pathsOf(tls), reload: appliance.reloadCertificate, log })] : []),
  ])
  const close = async (drainMs: number) => {
    await appliance.close(drainMs)
    // Watched until here: the download of a user who is removed during the drain is still cut.
    await Promise.all(watches.map((watch) => watch.close()))
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
  registerMachineMetrics(metrics, sensors)
  registerCompileMetrics(metrics, compiles)
  const eventMetrics = new EventMetrics(metrics, live)
  return {
    config,
    serial: config.serial === '' ? await storeIdentity(config.store) : config.serial,
    log,
    metrics,
    catalogue,
    profiles: new SegmentProfiles(),
    compiler: new FilterCompiler(compiles),
    regexCompiler: new RegexCompiler(compiles),
    slots,
    searches: new FairLimit({ places: SEARCHES }),
    recorder,
    uploads: new RunningUploads({ settings: config.uploads, metrics, log }),
    flushes: new FlushWatch(recorder),
    downloads: new DownloadMetrics(metrics, slots),
    damage: new DamageReports({ recorder, captures: storePaths(config.store).captures, log }),
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

function createHandler(parts: ApplianceParts, users: UsersFile): RequestListener {
  const { trustedProxies, hstsMaxAgeS } = parts.config.listen
  const app = createHttpApp({ ...parts, trustedProxies, hstsMaxAgeS })
  app.use(hideStorePath(parts.config.store, parts.log))
  app.use(async (ctx) => {
    const route = routeOf(ctx.method, ctx.path)
    await admit(ctx, route.scope, { users }, parts.config.auth)
    if (route.takesForm === true && ctx.method === 'POST') await takeForm(ctx, route.takesText?.name)
    refuseMisspelt(route, ctx)
    await route.handler(ctx, parts)
  })
  return app.callback()
}
