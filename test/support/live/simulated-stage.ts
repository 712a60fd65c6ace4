/** A gateway process over simulated devices in this process. */

import { SIMULATED_PASSWORD, SIMULATED_USER, SimulatedDevice } from '../devices/simulated-device.ts'
import { GatewayProcess } from '../processes/gateway-process.ts'
import { TempRedis } from '../processes/temp-redis.ts'
import { tempFolder } from '../temp-folder.ts'

export interface SimulatedStageOptions {
  /** Number of groups; devices at the same position in their groups hold the same packets. */
  readonly groups: number
  readonly devicesPerGroup: number
  readonly pace: { readonly packets: number; readonly packetsPerTick: number; readonly tickMs: number }
}

export interface SimulatedStage extends AsyncDisposable {
  readonly gateway: GatewayProcess
  readonly redis: TempRedis
  readonly groups: readonly (readonly SimulatedDevice[])[]
}

/** The name of a device in the gateway's configuration. */
export function stageName(group: number, index: number): string {
  return `g${group}d${index}`
}

export async function startSimulatedStage(options: SimulatedStageOptions): Promise<SimulatedStage> {
  await using building = new AsyncDisposableStack()
  const folder = building.use(await tempFolder())
  const redis = building.use(await TempRedis.create())
  await redis.settle('capfleet')
  const groups: SimulatedDevice[][] = []
  for (let group = 0; group < options.groups; group += 1) {
    const devices: SimulatedDevice[] = []
    for (let index = 0; index < options.devicesPerGroup; index += 1)
      devices.push(building.use(await SimulatedDevice.start({ ...options.pace, index })))
    groups.push(devices)
  }
  const gateway = building.use(
    await GatewayProcess.start({
      folder: folder.path,
      name: 'gateway',
      environment: { SIMULATED_PASSWORD },
      config: { redis: { url: redis.url }, devices: groups.flatMap(settingsOf) },
    }),
  )
  const owner = building.move()
  return { gateway, redis, groups, [Symbol.asyncDispose]: () => owner.disposeAsync() }
}

function settingsOf(devices: readonly SimulatedDevice[], group: number): readonly unknown[] {
  return devices.map(({ url }, index) => ({
    name: stageName(group, index),
    url,
    user: SIMULATED_USER,
    password: { env: 'SIMULATED_PASSWORD' },
  }))
}
