/** A thousand devices in a few processes, one Redis, gateways as in production, and the file that lists the devices. */
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { SIMULATED_PASSWORD, SIMULATED_USER } from '../support/devices/simulated-device.ts'
import { GATEWAY_AUTHORIZATION, GatewayProcess } from '../support/processes/gateway-process.ts'
import { TempRedis } from '../support/processes/temp-redis.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { DeviceHost, type DeviceMood } from './device-host.ts'

export interface ScaleOptions {
  readonly gateways: number
  /** Devices that the gateways know from the beginning. */
  readonly devices: number
  /** Further devices, which run but are not configured yet. */
  readonly spareDevices: number
  /** Captures of each device. */
  readonly captures: number
  /** Where the gateways write CPU profiles; undefined: they write none. */
  readonly profiles: string | undefined
}

/** Packets of each device: a stream takes half a second. */
export const PACKETS = 60
const PACE = { packets: PACKETS + 1, packetsPerTick: 12, tickMs: 100 }
const DEVICES_A_HOST = 525
const LOOK_MS = 50

export class ScaleWorld implements AsyncDisposable {
  readonly redis: TempRedis
  readonly hosts: readonly DeviceHost[]
  readonly gateways: readonly GatewayProcess[]
  readonly #folder: string
  readonly #owned: AsyncDisposableStack

  private constructor(
    parts: { redis: TempRedis; hosts: readonly DeviceHost[]; gateways: readonly GatewayProcess[] },
    folder: string,
    owned: AsyncDisposableStack,
  ) {
    this.redis = parts.redis
    this.hosts = parts.hosts
    this.gateways = parts.gateways
    this.#folder = folder
    this.#owned = owned
  }

  static async start(options: ScaleOptions): Promise<ScaleWorld> {
    await using building = new AsyncDisposableStack()
    const folder = building.use(await tempFolder()).path
    await mkdir(join(folder, 'delays'))
    const redis = building.use(await TempRedis.create())
    await redis.settle('capfleet')
    const { captures } = options
    const all = options.devices + options.spareDevices
    const hosts: DeviceHost[] = []
    for (let first = 0; first < all; first += DEVICES_A_HOST) {
      const devices = Math.min(DEVICES_A_HOST, all - first)
      hosts.push(building.use(await DeviceHost.start({ first, devices, captures, pace: PACE })))
    }
    const config = configOf(redis, hosts, range(0, options.devices))
    const gateways: GatewayProcess[] = []
    for (const index of range(0, options.gateways)) {
      const name = `gateway${index}`
      const environment = environmentOf(folder, name, options)
      gateways.push(building.use(await GatewayProcess.start({ folder, name, config, environment })))
    }
    return new ScaleWorld({ redis, hosts, gateways }, folder, building.move())
  }

  /** Lines of event-loop-meter.ts. */
  delaysPath(gateway: number): string {
    return delaysPath(this.#folder, `gateway${gateway}`)
  }

  async setMood(devices: readonly number[], mood: DeviceMood): Promise<void> {
    await Promise.all(this.hosts.map((host) => host.setMood(devices, mood)))
  }

  /** Configures these devices in all gateways, as an operator does. */
  async configure(devices: readonly number[]): Promise<void> {
    const config = configOf(this.redis, this.hosts, devices)
    await Promise.all(this.gateways.map((gateway) => gateway.reconfigure(config)))
  }

  /** Asks until all gateways know the device. */
  async untilKnown(device: number): Promise<void> {
    await Promise.all(
      this.gateways.map(async ({ url }) => {
        while ((await statusOf(`${url}/v1/devices/d${device}`)) !== 200) await delay(LOOK_MS)
      }),
    )
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned.disposeAsync()
  }
}

export function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from }, (_, index) => from + index)
}

function configOf(
  redis: TempRedis,
  hosts: readonly DeviceHost[],
  devices: readonly number[],
): Record<string, unknown> {
  const urls = hosts.flatMap((host) => host.urls)
  const members = devices.map((index) => ({
    name: `d${index}`,
    url: urls[index],
    user: SIMULATED_USER,
    password: { env: 'SIMULATED_PASSWORD' },
  }))
  return { redis: { url: redis.url }, devices: members }
}

function delaysPath(folder: string, name: string): string {
  // Outside the configuration's folder, which the gateways watch.
  return join(folder, 'delays', name)
}

function environmentOf(folder: string, name: string, { profiles }: ScaleOptions): Record<string, string> {
  const meter = join(REPOSITORY_ROOT, 'test/scale/event-loop-meter.ts')
  const profile = profiles === undefined ? '' : ` --cpu-prof --cpu-prof-dir=${profiles}`
  return {
    SIMULATED_PASSWORD,
    EVENT_LOOP_DELAYS: delaysPath(folder, name),
    NODE_OPTIONS: `--import=${meter}${profile}`,
  }
}

async function statusOf(url: string): Promise<number | undefined> {
  const asked = request(url, { headers: { authorization: GATEWAY_AUTHORIZATION }, agent: false })
  asked.end()
  const [answer] = await once(asked, 'response')
  answer.resume()
  return answer.statusCode
}
