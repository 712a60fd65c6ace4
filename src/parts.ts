/** Makes the gateway's parts from its configuration, once, and ends them in the right order. */
import { mkdir } from 'node:fs/promises'
import { readSecret } from './base/config-file.ts'
import type { Log } from './base/log.ts'
import { Metrics } from './base/metrics.ts'
import { UsersFile } from './base/users-file.ts'
import { DownloadOutcomes } from './download/download-outcomes.ts'
import { RunningDownloads } from './download/running-downloads.ts'
import { Device } from './fleet/device.ts'
import { DeviceClient } from './fleet/device-client.ts'
import { DeviceProxy } from './fleet/device-proxy.ts'
import type { GatewayConfig } from './gateway-config.ts'
import { forgetLeases } from './lease/forget-leases.ts'
import { LeaseScheduler } from './lease/lease-scheduler.ts'
import { LEASE_TIMINGS } from './lease/lease-timings.ts'
import { checkRedisServer, connectRedis, type RedisTarget } from './lease/redis-connection.ts'
import { startPrivateRedis } from './lease/redis-server.ts'
import type { GatewayParts } from './routes/gateway-parts.ts'

export interface OwnedParts extends AsyncDisposable {
  readonly parts: GatewayParts
  /** Refuses new downloads from now on. */
  drain(): void
}

/** Fails with bad-config or scheduler-unavailable; nothing is left running then. */
export async function buildParts(config: GatewayConfig, configPath: string, log: Log): Promise<OwnedParts> {
  await using building = new AsyncDisposableStack()
  const users = await UsersFile.load(config.auth.users)
  const fleet = await readDevices(config, configPath)
  const metrics = new Metrics()
  const redis = await openRedis(config, configPath, log, building)
  const leases = await joinScheduler(config, redis, log)
  building.defer(() => leases.close())
  const clients = openClients(fleet, config, building)
  const proxy = new DeviceProxy({ timeoutMs: config.control.timeoutMs })
  building.defer(() => proxy.close())
  const draining = new AbortController()
  const parts: GatewayParts = {
    fleet,
    clients,
    proxy,
    users,
    metrics,
    log,
    draining: draining.signal,
    limits: {
      ...config.downloads,
      probeTimeoutMs: config.control.probeTimeoutMs,
      timeZone: config.timeZone,
      tsModeAliases: config.tsModeAliases,
    },
    downloads: {
      leases,
      clients,
      metrics: new DownloadOutcomes(metrics),
      running: new RunningDownloads(),
      log,
      startTimeoutMs: config.downloads.startTimeoutMs,
      clientIdleTimeoutMs: config.downloads.clientIdleTimeoutMs,
    },
    refreshLeaseGauges: leaseGauges(metrics, leases, fleet),
  }
  const owned = building.move()
  const drain = () => {
    draining.abort()
    leases.drain()
  }
  return { parts, drain, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

async function readDevices(config: GatewayConfig, configPath: string): Promise<readonly Device[]> {
  return Promise.all(
    config.devices.map(
      async (device, index) =>
        new Device({
          ...device,
          password: await readSecret(device.password, configPath, `devices[${index}].password`),
        }),
    ),
  )
}

/** The configured Redis, or a private one that ends with the gateway. */
async function openRedis(
  config: GatewayConfig,
  configPath: string,
  log: Log,
  building: AsyncDisposableStack,
): Promise<RedisTarget> {
  const target = await redisTarget(config, configPath, log, building)
  const redis = connectRedis(target, 'commands', log)
  try {
    await checkRedisServer(redis)
    if (config.redis.url === undefined) await forgetLeases(redis, config.redis.keyPrefix)
  } finally {
    redis.disconnect()
  }
  return target
}

function joinScheduler(config: GatewayConfig, redis: RedisTarget, log: Log): Promise<LeaseScheduler> {
  const { streamsPerDevice } = config.downloads
  const { keyPrefix, url } = config.redis
  // Nobody else can use the places of a private Redis, however long it is away: no reason to cut streams.
  const timings = url === undefined ? { ...LEASE_TIMINGS, fenceMs: Infinity } : LEASE_TIMINGS
  return LeaseScheduler.start({ redis, keyPrefix, streamsPerDevice, log, timings })
}

async function redisTarget(
  config: GatewayConfig,
  configPath: string,
  log: Log,
  building: AsyncDisposableStack,
): Promise<RedisTarget> {
  const { url, password } = config.redis
  if (url !== undefined) {
    return { url, password: password && (await readSecret(password, configPath, 'redis.password')) }
  }
  await mkdir(config.home, { recursive: true, mode: 0o700 })
  const server = await startPrivateRedis(config.home, log)
  building.defer(() => server.close())
  return { url: server.socketPath }
}

function openClients(
  fleet: readonly Device[],
  config: GatewayConfig,
  building: AsyncDisposableStack,
): ReadonlyMap<string, DeviceClient> {
  const limits = {
    connectTimeoutMs: config.control.connectTimeoutMs,
    idleTimeoutMs: config.downloads.idleTimeoutMs,
  }
  const clients = new Map<string, DeviceClient>()
  for (const device of fleet) {
    const client = new DeviceClient(device, limits)
    building.defer(() => client.close())
    clients.set(device.name, client)
  }
  return clients
}

function leaseGauges(
  metrics: Metrics,
  leases: LeaseScheduler,
  fleet: readonly Device[],
): () => Promise<void> {
  const names = fleet.map((device) => device.name)
  let use: Awaited<ReturnType<LeaseScheduler['use']>> = []
  metrics.gauge(
    'lease_streams',
    'Streams in use and requests waiting by device',
    ['device', 'state'],
    (gauge) => {
      for (const [index, { used, waiting }] of use.entries()) {
        const device = names[index] ?? ''
        gauge.set({ device, state: 'used' }, used)
        gauge.set({ device, state: 'waiting' }, waiting)
      }
    },
  )
  metrics.gauge('scheduler_reachable', 'Whether Redis acknowledges heartbeats', [], (gauge) =>
    gauge.set(leases.reachable ? 1 : 0),
  )
  return async () => {
    // While Redis is away the last figures stand; scheduler_reachable tells.
    use = await leases.use(names).catch(() => use)
  }
}
