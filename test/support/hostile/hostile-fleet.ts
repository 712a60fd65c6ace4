/** A gateway over groups of three devices each; one in each group misbehaves. */

import { SIMULATED_PASSWORD, SIMULATED_USER } from '../devices/simulated-device.ts'
import { GatewayProcess } from '../processes/gateway-process.ts'
import { TempRedis } from '../processes/temp-redis.ts'
import type { SeededRandom } from '../seeded-random.ts'
import { tempFolder } from '../temp-folder.ts'
import { HOSTILE_NAMES } from './hostile-behaviours.ts'
import type { HostileCompression } from './hostile-case.ts'
import { type HostileAgain, HostileDevice } from './hostile-device.ts'

export const GROUP_DEVICES = 3

export interface HostileFleet extends AsyncDisposable {
  readonly gateway: GatewayProcess
  /** Each group has its devices' streams to itself, so that groups do not wait for each other. */
  readonly groups: readonly (readonly HostileDevice[])[]
}

/** Hanging downloads are cut soon; a device may fail any number of times and is still used. */
const SETTINGS = {
  downloads: { idleTimeoutMs: 1_000, startTimeoutMs: 2_500 },
  health: { failuresMax: 1_000_000, intervalS: 60 },
}

export async function startHostileFleet(groups: number, random: SeededRandom): Promise<HostileFleet> {
  await using building = new AsyncDisposableStack()
  const folder = building.use(await tempFolder())
  const redis = building.use(await TempRedis.create())
  await redis.settle('capfleet')
  const started: HostileDevice[][] = []
  for (let group = 0; group < groups; group += 1) {
    const devices: HostileDevice[] = []
    for (let index = 0; index < GROUP_DEVICES; index += 1) {
      const options = { name: `g${group}d${index}`, index, random, elsewhere: devices[0]?.url ?? '' }
      devices.push(building.use(await HostileDevice.start(options)))
    }
    started.push(devices)
  }
  const gateway = building.use(
    await GatewayProcess.start({
      folder: folder.path,
      name: 'gateway',
      environment: { SIMULATED_PASSWORD },
      config: { ...SETTINGS, redis: { url: redis.url }, devices: started.flat().map(settingOf) },
    }),
  )
  const owner = building.move()
  return { gateway, groups: started, [Symbol.asyncDispose]: () => owner.disposeAsync() }
}

/**
 * Declared as an appliance of ours: with another manufacturer's, a relay repeats a request if the device may have had
 * no free stream.
 */
function settingOf({ name, url }: HostileDevice): Record<string, unknown> {
  return { name, url, kind: 'capfleet', user: SIMULATED_USER, password: { env: 'SIMULATED_PASSWORD' } }
}

/** A download and its expected result. */
export interface HostileDownload {
  readonly act: string
  /** For a merge, which asks a device that broke off again; a relay never does. */
  readonly again: HostileAgain
  readonly way: 'relay' | 'merge'
  readonly compression: HostileCompression
  /** Index of the misbehaving device in its group. */
  readonly index: number
  readonly cut: number
  readonly packets: number
}

const COMPRESSIONS: readonly HostileCompression[] = ['none', 'fast', 'zstd', 'best']
/** A device that never recovers is given up after half a minute: there are few of those. */
const AGAIN: readonly HostileAgain[] = [
  ...Array.from({ length: 12 }, () => 'honest' as const),
  ...Array.from({ length: 7 }, () => 'refuses' as const),
  'hostile',
]
const WAYS = ['relay', 'merge'] as const

/** Every combination of behaviour, way and compression in turn, with random cut points. */
export function hostileDownload(
  number: number,
  random: SeededRandom,
  sizes: readonly number[],
): HostileDownload {
  const pick = <Item>(list: readonly Item[], at: number): Item => list[at % list.length] as Item
  const at = Math.floor(number / HOSTILE_NAMES.length)
  return {
    act: pick(HOSTILE_NAMES, number),
    again: random.pick(AGAIN),
    way: pick(WAYS, at),
    compression: pick(COMPRESSIONS, Math.floor(at / WAYS.length)),
    index: random.integer(0, GROUP_DEVICES - 1),
    cut: random.next(),
    packets: random.integer(1, 5) === 1 ? (sizes[1] ?? 0) : (sizes[0] ?? 0),
  }
}
