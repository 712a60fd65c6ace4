/** A gateway with a private Redis over real appliances with small captures: two of them, or those that a test names. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DeviceLine } from '../devices/device-line.ts'
import { makePacket, makePcap } from '../packets/packet-maker.ts'
import { startTempAppliance, type TempAppliance } from './temp-appliance.ts'
import { type BoundedUser, startTempGateway, type TempGateway } from './temp-gateway.ts'
import { TempRedis } from './temp-redis.ts'

export interface SmallFleet extends AsyncDisposable {
  readonly gateway: TempGateway
  /** "east" and "west", unless the test names others; their captures are named "east-first" and so on. */
  readonly appliances: readonly TempAppliance[]
  /** Those over which the gateway reaches the appliances. */
  readonly lines: readonly DeviceLine[]
}

/** The first packet of each capture. */
export const SMALL_FLEET_START_NS = 1_790_000_000_000_000_000n

const DEVICES = ['east', 'west']
const PACKETS = 20

/**
 * `captureOf`: the file of a capture, by its name, or undefined for none; default: packets that contain their origin.
 * `settings` are those of the gateway.
 */
export async function startSmallFleet(
  bounded: readonly BoundedUser[] = [],
  captureOf: (name: string) => Buffer | undefined = smallCapture,
  settings: Parameters<typeof startTempGateway>[2] = {},
): Promise<SmallFleet> {
  return await startFleetOf(DEVICES, { bounded, captureOf, settings })
}

interface FleetOptions {
  readonly bounded?: readonly BoundedUser[]
  readonly captureOf: (name: string) => Buffer | undefined
  readonly settings?: Parameters<typeof startTempGateway>[2]
}

/** The same over appliances of these names, in this order. */
export async function startFleetOf(
  names: readonly string[],
  { bounded, captureOf, settings }: FleetOptions,
): Promise<SmallFleet> {
  await using starting = new AsyncDisposableStack()
  const redis = starting.use(await TempRedis.create())
  const appliances: TempAppliance[] = []
  for (const name of names) {
    const appliance = starting.use(await startTempAppliance({ config: { deviceName: name } }))
    for (const part of ['first', 'second']) await importCapture(appliance, `${name}-${part}`, captureOf)
    appliances.push(appliance)
  }
  const [, password = ''] = (appliances[0]?.credentials('full') ?? '').split(':')
  process.env.SMALL_FLEET_PASSWORD = password
  const lines: DeviceLine[] = []
  for (const { url } of appliances) lines.push(starting.use(await DeviceLine.start(url)))
  const devices = lines.map(({ url }, index) => ({
    name: names[index],
    url,
    user: 'full',
    password: { env: 'SMALL_FLEET_PASSWORD' },
  }))
  const gateway = starting.use(await startTempGateway([], redis.url, { ...settings, devices }, bounded))
  const owned = starting.move()
  return { gateway, appliances, lines, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

function smallCapture(name: string): Buffer {
  const packets = Array.from({ length: PACKETS }, (_, index) =>
    makePacket(SMALL_FLEET_START_NS + BigInt(index) * 1_000_000n, `${name} ${index}`, 80),
  )
  return makePcap(packets)
}

async function importCapture(
  appliance: TempAppliance,
  name: string,
  captureOf: (name: string) => Buffer | undefined,
): Promise<void> {
  const bytes = captureOf(name)
  if (bytes === undefined) return
  const path = join(appliance.folder, `${name}.pcap`)
  await writeFile(path, bytes)
  await appliance.importFiles(name, path)
}
