import type { GatewayConfig } from '../../../src/gateway/gateway-config.ts'
import { SIMULATED_PASSWORD, SIMULATED_USER, SimulatedDevice } from '../devices/simulated-device.ts'
import { startTempGateway, type TempGateway } from './temp-gateway.ts'
import { TempRedis } from './temp-redis.ts'

export interface SimulatedWorld extends AsyncDisposable {
  readonly redis: TempRedis
  readonly devices: readonly SimulatedDevice[]
  readonly gateway: TempGateway
  /** The devices, as for startTempGateway(). */
  readonly members: Parameters<typeof startTempGateway>[0]
}

export interface SimulatedWorldOptions {
  readonly devices: number
  readonly packets: number
  readonly packetsPerTick: number
  readonly settings?: Partial<Record<keyof GatewayConfig, unknown>>
}

/** A Redis, devices that report correct times, and a gateway over them. */
export async function startSimulatedWorld(options: SimulatedWorldOptions): Promise<SimulatedWorld> {
  await using starting = new AsyncDisposableStack()
  const redis = starting.use(await TempRedis.create())
  const devices: SimulatedDevice[] = []
  for (let index = 0; index < options.devices; index += 1) {
    devices.push(starting.use(await SimulatedDevice.start({ index, tickMs: 1, ...options })))
  }
  const members = devices.map(
    ({ name, url }) =>
      ({
        password: SIMULATED_PASSWORD,
        config: {
          name,
          url,
          user: SIMULATED_USER,
          password: { env: 'FAKE_DEVICE_PASSWORD' },
        },
      }) as const,
  )
  const gateway = starting.use(await startTempGateway(members, redis.url, options.settings))
  const owned = starting.move()
  return { redis, devices, gateway, members, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
