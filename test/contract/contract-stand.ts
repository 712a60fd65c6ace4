/**
 * Real programs: three appliances with their recorders and stores, Redis, two gateways (the second one over devices
 * that fail), and a worker of the first gateway. Capture ports are scripted; everything else is as in production.
 */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PortDriver } from '../../appliance/recorder/capture/port-driver.ts'
import { RawDevice } from '../support/devices/raw-device.ts'
import { ScriptedEngine } from '../support/live/scripted-engine.ts'
import { writeBigCapture } from '../support/packets/big-capture.ts'
import { makePacket, makePcap } from '../support/packets/packet-maker.ts'
import { makePcapng } from '../support/packets/pcapng-maker.ts'
import { startTempAppliance, type TempAppliance } from '../support/processes/temp-appliance.ts'
import { startTempGateway, type TempGateway } from '../support/processes/temp-gateway.ts'
import { TempRedis } from '../support/processes/temp-redis.ts'
import { startTempWorker } from '../support/processes/temp-worker.ts'
import {
  BIG,
  CAPTURES,
  DEVICES,
  type DeviceName,
  EAST_ZONE,
  GATEWAY_ZONE,
  MIXED,
  MIXED_NS,
  RING,
  ringNs,
  SECOND_NS,
  START_NS,
  TWIN,
} from './contract-captures.ts'

/** How long the gateway waits for a mute device: longer than a healthy one ever takes. */
const DEVICE_LIMIT_MS = 5_000
const ALL_DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun']
/** Ports of east and west that capture. */
export const PORTS = [0, 3]

export interface ContractStand extends AsyncDisposable {
  readonly appliances: Readonly<Record<DeviceName, TempAppliance>>
  /** Over east, west and ring. */
  readonly gateway: TempGateway
  /** Over east and devices that fail: "dead" does not exist, "mute" never answers, "odd" does not speak HTTP. */
  readonly lame: TempGateway
  readonly redis: TempRedis
  /** Counts of a device's capture ports, for the capture that was started last. */
  engineOf(device: 'east' | 'west'): ScriptedEngine
  /** A capture of two packets, for requests that delete it. */
  importSmall(device: DeviceName, name: string): Promise<void>
}

export async function startContractStand(): Promise<ContractStand> {
  await using parts = new AsyncDisposableStack()
  const engines = new Map<string, ScriptedEngine>()
  const [redis, east, west, ring] = await Promise.all([
    TempRedis.create(),
    startTempAppliance({
      config: {
        deviceName: 'east',
        model: 'CF-1',
        timeZone: EAST_ZONE,
        tsModeAliases: { footer: 'vendorA7130' },
      },
      driver: scriptedPorts((engine) => engines.set('east', engine)),
    }),
    startTempAppliance({
      config: { deviceName: 'west', capture: { schedule: [scheduleRow()] } },
      driver: scriptedPorts((engine) => engines.set('west', engine)),
    }),
    startTempAppliance({
      config: { deviceName: 'ring' },
      segmentBytes: RING.segmentBytes,
      retention: {
        maxBytes: 7 * RING.segmentBytes,
        minFreeBytes: 0,
        maxAgeMs: 0,
        onFull: 'roll',
        pinMs: 30_000,
      },
    }),
  ])
  parts.use(redis)
  const appliances = { east: parts.use(east), west: parts.use(west), ring: parts.use(ring) }
  await Promise.all([importCaptures(appliances), fillRing(ring)])
  process.env.CONTRACT_PASSWORD = east.credentials('full').split(':')[1]
  const gateway = parts.use(
    await startTempGateway([], redis.url, {
      devices: DEVICES.map((name) => ({
        ...settingOf(name, appliances[name].url),
        site: name === 'ring' ? 'eu' : 'us',
      })),
      timeZone: GATEWAY_ZONE,
    }),
  )
  parts.use(await startTempWorker(gateway))
  const odd = parts.use(await RawDevice.start())
  odd.answer = { writes: [Buffer.from('SSH-2.0-x\r\n\r\n')], end: 'close' }
  const mute = parts.use(await RawDevice.start())
  mute.answer = { writes: [], end: 'hang' }
  const lame = parts.use(
    await startTempGateway([], redis.url, {
      redis: { url: redis.url, keyPrefix: 'lame' },
      devices: [
        settingOf('east', east.url),
        settingOf('dead', 'http://127.0.0.1:1'),
        settingOf('mute', mute.url),
        settingOf('odd', odd.url),
      ],
      // The gateway gives up on the mute device after this time; the others answer long before, even on a busy machine.
      control: { timeoutMs: DEVICE_LIMIT_MS },
      downloads: { startTimeoutMs: DEVICE_LIMIT_MS },
    }),
  )
  const owner = parts.move()
  return {
    appliances,
    gateway,
    lame,
    redis,
    engineOf: (device) => {
      const engine = engines.get(device)
      if (engine === undefined) throw new Error(`no capture was started on ${device}`)
      return engine
    },
    importSmall: async (device, name) => {
      const path = join(appliances[device].folder, `${name}.pcap`)
      const records = [0n, 1n].map((step) => makePacket(START_NS - 86_400n * SECOND_NS + step, name, 60))
      await writeFile(path, makePcap(records))
      await appliances[device].importFiles(name, path)
    },
    [Symbol.asyncDispose]: () => owner.disposeAsync(),
  }
}

function settingOf(name: string, url: string) {
  return { name, url, user: 'full', password: { env: 'CONTRACT_PASSWORD' } }
}

function scheduleRow() {
  return { name: 'always', start: '00:00:00', stop: '24:00:00', days: ALL_DAYS, zone: 'UTC' }
}

function scriptedPorts(onOpen: (engine: ScriptedEngine) => void): PortDriver {
  return new PortDriver({
    ports: PORTS.map((port) => ({
      port,
      interfaceName: `eth${port}`,
      threads: 1,
      ringBytes: 2 ** 22,
      snaplen: 262_144,
      isPromiscuous: false,
    })),
    segmentBytes: 2 ** 20,
    syncIntervalMs: 100,
    queueBytes: 2 ** 22,
    open: async () => {
      const engine = new ScriptedEngine(PORTS)
      onOpen(engine)
      return engine
    },
  })
}

async function importCaptures(appliances: Readonly<Record<DeviceName, TempAppliance>>): Promise<void> {
  for (const { device, fullName, streams } of Object.values(CAPTURES)) {
    const path = join(appliances[device].folder, `${fullName}.pcapng`)
    await writeFile(path, makePcapng(streams.length, streams.flat()))
    await appliances[device].importFiles(fullName, path)
  }
  const twin = join(appliances.east.folder, 'twin.pcap')
  await writeFile(twin, makePcap([makePacket(START_NS + 3_600n * SECOND_NS, 'twin', 60)]))
  for (const device of ['east', 'west'] as const) await appliances[device].importFiles(TWIN, twin)
  // At the same time on one device, with two link types.
  for (const [name, linkType] of MIXED) {
    const path = join(appliances.east.folder, `${name}.pcap`)
    await writeFile(path, makePcap([makePacket(MIXED_NS, name, 60)], { linkType }))
    await appliances.east.importFiles(name, path)
  }
  const big = join(appliances.east.folder, 'big.pcap')
  await writeBigCapture(big)
  await appliances.east.importFiles(BIG, big)
}

/** The third capture causes the removal of the first one and of a part of the second. */
async function fillRing(ring: TempAppliance): Promise<void> {
  const captures = [
    [RING.gone, -100, 9],
    [RING.trimmed, 0, 45],
    [RING.young, 45, 45],
  ] as const
  for (const [name, first, count] of captures) {
    const path = join(ring.folder, `${name}.pcap`)
    const records = Array.from({ length: count }, (_, index) =>
      makePacket(ringNs(first + index), `${first + index}`, RING.packetBytes),
    )
    await writeFile(path, makePcap(records))
    await ring.recorder.importCapture({ name, files: [path], mayEvict: true })
  }
}
