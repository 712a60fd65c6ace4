/** Creates the gateway's parts from its configuration, once, and ends them in the right order. */
import { fileURLToPath } from 'node:url'
import { LoginGate } from '../shared/auth/login-gate.ts'
import { UsersFile } from '../shared/auth/users-file.ts'
import { readSecret } from '../shared/base/config-file.ts'
import type { SpanSink } from '../shared/base/ended-span.ts'
import { CapfleetError } from '../shared/base/error.ts'
import { FairLimit } from '../shared/base/fair-limit.ts'
import type { Log } from '../shared/base/log.ts'
import type { Metrics } from '../shared/base/metrics.ts'
import { productVersion } from '../shared/base/product-version.ts'
import { isInsecure } from '../shared/base/setting-schemas.ts'
import { SpanExporter } from '../shared/base/span-exporter.ts'
import { LiveLimit } from '../shared/http/live-limit.ts'
import { PackedFiles } from '../shared/http/packed-files.ts'
import { PageFiles } from '../shared/http/page-files.ts'
import { RunningUploads } from '../shared/http/running-uploads.ts'
import { Quotas } from './auth/quotas.ts'
import { DeviceProxy } from './device/device-proxy.ts'
import { ExportChanges, RECORD_KEPT_MS } from './export/export-changes.ts'
import { publishExports } from './export/export-metrics.ts'
import type { FetchParts } from './fetch/body/fetch-download.ts'
import { ANSWER_MAX_MS } from './fetch/lines/line-answer.ts'
import { SharedAnswers } from './fleet/captures/shared-answers.ts'
import { FleetEvents } from './fleet/events/fleet-events.ts'
import { CallLimits } from './fleet/questions/call-limits.ts'
import { FleetRoster } from './fleet/roster/fleet-roster.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { shuttingDown } from './lease/lease-failure.ts'
import { publishDeviceUse } from './lease/lease-metrics.ts'
import type { LeaseScheduler } from './lease/lease-scheduler.ts'
import { openAudit } from './open-audit.ts'
import { openDownloads } from './open-downloads.ts'
import { openExports } from './open-exports.ts'
import { openFleet, planRoster } from './open-fleet.ts'
import { openGatewayRedis } from './open-redis.ts'
import { joinScheduler, watchShared } from './open-scheduler.ts'
import { openTokens } from './open-tokens.ts'
import type { RedisTarget } from './redis/redis-connection.ts'
import { isPrivate } from './redis/redis-settings.ts'
import { SharedClock } from './redis/shared-clock.ts'
import { CountOutcomes } from './routes/downloads/count-outcomes.ts'
import type { CountHandling, SeenHandling } from './routes/downloads/downloads-parts.ts'
import { SeenOutcomes } from './routes/downloads/seen-outcomes.ts'
import type { ExportHandling } from './routes/exports/exports-parts.ts'
import type { GatewayParts } from './routes/gateway-parts.ts'
import type { GatewayLimits } from './routes/request/request-parts.ts'
import { RunningQuestions } from './serve/running-questions.ts'

export interface OwnedParts extends AsyncDisposable {
  readonly parts: GatewayParts
  /** Rejects new long-running requests from now on, and ends those that wait or would never end on their own. */
  drain(): void
  /**
   * Applies the parts of a changed configuration that can change at run time, and logs the names of the others. Fails
   * with bad-config without changing anything.
   */
  reload(changed: GatewayConfig): Promise<void>
  /** As TokenKeys.reload. */
  reloadTokenKeys(): Promise<void>
}

export interface BuildContext {
  /** Relative paths of secret files are resolved against its folder. */
  readonly configPath: string
  readonly log: Log
  readonly metrics: Metrics
  /** Ends the wait for an unreachable Redis. */
  readonly signal: AbortSignal
}

/** Waits for Redis. Fails with bad-config or scheduler-unavailable, leaving nothing running. */
export async function buildParts(config: GatewayConfig, context: BuildContext): Promise<OwnedParts> {
  const { configPath, log, metrics, signal } = context
  await using building = new AsyncDisposableStack()
  const users = await UsersFile.load(config.auth.users, new LoginGate(config.auth.logins, metrics), {
    bounds: true,
  })
  const roster = await planRoster(config, configPath)
  const fleet = openFleet(config, metrics, log)
  const audit = await openAudit(config, { kind: 'gateway', log, metrics }, building)
  const redis = await openGatewayRedis(config, { configPath, log, signal }, building)
  const { keyPrefix } = config.redis
  const clock = building.use(await SharedClock.start({ redis, keyPrefix, metrics, log }))
  await audit.expireBy(clock)
  const tokens = await openTokens(config, { users, redis, clock, metrics, log }, building)
  const sole = isPrivate(config.redis)
  const leases = await joinScheduler(config, { redis, fleet, metrics, log, sole })
  building.defer(() => leases.close())
  publishDeviceUse(leases, () => fleet.devices.map(({ name }) => name), metrics)
  // Created after the leases, so that it ends before them: no lease is returned while its stream is open.
  building.use(fleet)
  const busyOf = (names: readonly string[]) => devicesInUse(leases, names)
  const owner = building.use(new FleetRoster({ fleet, busyOf, log }))
  await owner.configure(roster)
  watchShared(config, { redis, fleet, metrics, log }, building)
  const exportParts = { redis, clock, leases, metrics, log }
  const exports = await openExportHandling(config, configPath, exportParts, building)
  const downloads = openDownloads(config, { leases, fleet, audit, redis, metrics, log }, building)
  const draining = new AbortController()
  const callLimits = new CallLimits(config.control, metrics, fleet)
  const parts: GatewayParts = {
    fleet,
    events: building.use(new FleetEvents({ fleet, log, metrics })),
    live: openLive(config, metrics),
    proxy: new DeviceProxy({ timeoutMs: config.control.timeoutMs, ending: draining.signal }),
    uploads: new RunningUploads({ settings: config.uploads, metrics, log }),
    callLimits,
    quotas: building.use(new Quotas({ redis, keyPrefix, log })),
    audit,
    vouchers: { users, tokens: tokens.verifier },
    tokens: tokens.handling,
    tickets: tokens.tickets,
    page: await PageFiles.read(PAGE_FOLDER),
    docs: await PageFiles.read(DOCS_FOLDER),
    dissector: config.console.dissector ? await PackedFiles.read(DISSECTOR_FOLDER) : undefined,
    metrics,
    spans: await openTracing(config, configPath, { metrics, log }, building),
    log,
    draining: draining.signal,
    isInsecure: isInsecure(config.listen),
    trustedProxies: config.listen.trustedProxies,
    hstsMaxAgeS: config.listen.hstsMaxAgeS,
    limits: limitsOf(config),
    downloads,
    questions: building.use(new RunningQuestions({ redis, keyPrefix, leases, log })),
    ...openLines({ leases, callLimits, fetch: downloads, metrics }),
    exports,
  }
  const owned = building.move()
  const drain = () => {
    draining.abort(shuttingDown())
    leases.drain()
  }
  const reload = async (changed: GatewayConfig) => {
    await owner.configure(await planRoster(changed, configPath))
    const ignored = keysForRestart(config, changed)
    if (ignored.length > 0) log.warn('config.needs-restart', { keys: ignored })
  }
  const reloadTokenKeys = () => tokens.keys.reload()
  return { parts, drain, reload, reloadTokenKeys, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** Returns undefined if no collector is configured. Fails with bad-config. */
async function openTracing(
  { tracing }: GatewayConfig,
  configPath: string,
  { metrics, log }: { readonly metrics: Metrics; readonly log: Log },
  owner: AsyncDisposableStack,
): Promise<SpanSink | undefined> {
  if (tracing === undefined) return undefined
  const { endpoint, ratio } = tracing
  const token = tracing.token && (await readSecret(tracing.token, configPath, 'tracing.token'))
  return owner.use(new SpanExporter({ endpoint, token, ratio, version: productVersion(), log, metrics }))
}

/** Where the build puts the page, the documentation and the dissector. */
const PAGE_FOLDER = fileURLToPath(new URL('../../dist-console', import.meta.url))
const DOCS_FOLDER = fileURLToPath(new URL('../../dist-docs', import.meta.url))
const DISSECTOR_FOLDER = fileURLToPath(new URL('../../dist-dissector', import.meta.url))

/** All other settings are only read at the start. */
const LIVE_KEYS: ReadonlySet<string> = new Set(['devices', 'deviceDiscovery'])

function keysForRestart(running: GatewayConfig, changed: GatewayConfig): readonly string[] {
  const keys = Object.keys(changed) as (keyof GatewayConfig)[]
  return keys.filter(
    (key) => !LIVE_KEYS.has(key) && JSON.stringify(running[key]) !== JSON.stringify(changed[key]),
  )
}

/** A program may wait for many exports at once, and each costs little. */
const EXPORT_FOLLOWERS = { clientsMax: 1_024, callerClientsMax: 128 }

/** `owner` ends what is opened. Fails with bad-config. */
async function openExportHandling(
  config: GatewayConfig,
  configPath: string,
  { redis, clock, leases, metrics, log }: ExportHandlingParts,
  owner: AsyncDisposableStack,
): Promise<ExportHandling> {
  const exports = await openExports(config, configPath, { redis, clock, log }, owner)
  publishExports(exports.store, () => leases.reachable, metrics)
  const { enabled, perUserMax, devicesMax } = config.exports
  return {
    ...exports,
    changes: owner.use(new ExportChanges({ redis, store: exports.store, log })),
    records: new SharedAnswers(RECORD_KEPT_MS),
    followers: new LiveLimit(EXPORT_FOLLOWERS),
    isEnabled: enabled,
    perUserMax,
    devicesMax,
  }
}

interface ExportHandlingParts {
  readonly redis: RedisTarget
  readonly clock: SharedClock
  readonly leases: LeaseScheduler
  readonly metrics: Metrics
  readonly log: Log
}

function limitsOf(config: GatewayConfig): GatewayLimits {
  const { downloads, control, auth, timeZone, tsModeAliases, demoTour } = config
  return {
    ...downloads,
    probeTimeoutMs: control.probeTimeoutMs,
    controlTimeoutMs: control.timeoutMs,
    anonymousSystem: auth.anonymousSystem,
    anonymousMetrics: auth.anonymousMetrics,
    listEntriesMax: control.listEntriesMax,
    timeZone,
    tsModeAliases,
    demoTour,
  }
}

function openLive({ events }: GatewayConfig, metrics: Metrics): LiveLimit {
  const live = new LiveLimit(events)
  metrics.gauge('event_clients', 'Clients that follow /v1/events', [], (gauge) => gauge.set(live.used))
  return live
}

/** Each costs a connection to each device, and memory for the lines that its client has not read. The same for counts. */
const SEARCHES = { clientsMax: 128, callerClientsMax: 8 }
/** Searches of devices that run at the same time, for all requests: many devices, or several users. */
const SEARCHED_AT_ONCE = 256
const SEARCH_RETRY_S = 5

function openLines({ leases, callLimits, fetch, metrics }: LinesOpening): {
  readonly seen: SeenHandling
  readonly counts: CountHandling
} {
  const asking = {
    leases,
    callLimits,
    turns: new FairLimit({ places: SEARCHED_AT_ONCE }),
    answerLimit: () => AbortSignal.timeout(ANSWER_MAX_MS),
  }
  const searching = new LiveLimit(SEARCHES, (who) =>
    tooMany(`${who} search for addresses already; put several addresses into one search, or try again later`),
  )
  const counting = new LiveLimit(SEARCHES, (who) =>
    tooMany(`${who} count packets already; end one of these counts, or try again later`),
  )
  return {
    seen: {
      ...asking,
      fetch,
      running: searching,
      outcomes: new SeenOutcomes(metrics, () => searching.used),
    },
    counts: { ...asking, running: counting, outcomes: new CountOutcomes(metrics, () => counting.used) },
  }
}

function tooMany(message: string): CapfleetError {
  return new CapfleetError('too-many-requests', message, { retryAfterS: SEARCH_RETRY_S })
}

interface LinesOpening {
  readonly leases: LeaseScheduler
  readonly callLimits: CallLimits
  readonly fetch: FetchParts
  readonly metrics: Metrics
}

async function devicesInUse(leases: LeaseScheduler, names: readonly string[]): Promise<ReadonlySet<string>> {
  const use = await leases.use(names)
  return new Set(names.filter((_, index) => (use[index]?.used ?? 0) + (use[index]?.waiting ?? 0) > 0))
}
