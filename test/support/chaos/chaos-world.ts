/** One Redis, gateways as processes, simulated devices, and a network that can be cut anywhere. */
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Redis } from 'ioredis'
import { SIMULATED_PASSWORD, SIMULATED_USER } from '../devices/simulated-device.ts'
import { SimulatedFleet } from '../devices/simulated-fleet.ts'
import { leaseKeys } from '../lease/lease-dump.ts'
import { GatewayProcess } from '../processes/gateway-process.ts'
import { TempRedis } from '../processes/temp-redis.ts'
import { tempFolder } from '../temp-folder.ts'

export interface ChaosWorldOptions {
  readonly gateways: number
  readonly devices: number
  /** The number of readers that devices report instead of the real one. */
  readonly claimedReaders?: number
  readonly pace: { readonly packets: number; readonly packetsPerTick: number; readonly tickMs: number }
  /** Per gateway; gateways with different prefixes do not share a queue. */
  readonly keyPrefixOf?: (gateway: number) => string
}

const PREFIX = 'capfleet'

export class ChaosWorld implements AsyncDisposable {
  readonly redis: TempRedis
  readonly fleet: SimulatedFleet
  readonly gateways: readonly GatewayProcess[]
  readonly deviceCount: number
  readonly #owned: AsyncDisposableStack

  private constructor(
    parts: { redis: TempRedis; fleet: SimulatedFleet; gateways: readonly GatewayProcess[] },
    deviceCount: number,
    owned: AsyncDisposableStack,
  ) {
    this.redis = parts.redis
    this.fleet = parts.fleet
    this.gateways = parts.gateways
    this.deviceCount = deviceCount
    this.#owned = owned
  }

  static async create(options: ChaosWorldOptions): Promise<ChaosWorld> {
    await using building = new AsyncDisposableStack()
    const folder = building.use(await tempFolder())
    const redis = building.use(await TempRedis.create())
    await redis.settle('capfleet')
    const fleet = building.use(await SimulatedFleet.start({ ...options, redisPath: redis.url }))
    const gateways: GatewayProcess[] = []
    for (let index = 0; index < options.gateways; index += 1) {
      const config = gatewayConfig(fleet, index, options.keyPrefixOf?.(index) ?? PREFIX)
      const environment = { SIMULATED_PASSWORD }
      const started = await GatewayProcess.start({
        folder: folder.path,
        name: `gateway${index}`,
        config,
        environment,
      })
      gateways.push(building.use(started))
    }
    return new ChaosWorld({ redis, fleet, gateways }, options.devices, building.move())
  }

  /** Kills Redis and restarts it at once, with the content of its append-only file, or empty. */
  async restartRedis(options: { readonly empty: boolean }): Promise<void> {
    await this.redis.stop('SIGKILL')
    if (options.empty)
      await rm(join(dirname(this.redis.url), 'appendonlydir'), { recursive: true, force: true })
    await this.redis.start()
  }

  /** Keys that belong to a request that no longer exists. */
  async leakedKeys(): Promise<readonly string[]> {
    return leaseKeys(await this.redis.leftovers(PREFIX), PREFIX)
  }

  /** Sends one command to the world's Redis, bypassing all proxies. */
  async redisCall(command: string, ...args: readonly string[]): Promise<unknown> {
    const redis = new Redis(this.redis.url)
    try {
      return await redis.call(command, ...args)
    } finally {
      redis.disconnect()
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned.disposeAsync()
  }
}

function gatewayConfig(fleet: SimulatedFleet, gateway: number, keyPrefix: string): Record<string, unknown> {
  const ports = fleet.facts.devicePorts[gateway] ?? []
  return {
    redis: { url: `redis://127.0.0.1:${fleet.facts.redisPorts[gateway]}`, keyPrefix },
    devices: ports.map((port, index) => ({
      name: `d${index}`,
      url: `http://127.0.0.1:${port}`,
      user: SIMULATED_USER,
      password: { env: 'SIMULATED_PASSWORD' },
    })),
  }
}
