/**
 * A process that runs simulated devices and the network between them, Redis and the gateways: each gateway reaches
 * each device and Redis through its own proxies. Its parent is simulated-fleet.ts.
 */
import { FaultProxy } from './fault-proxy.ts'
import { SimulatedDevice } from './simulated-device.ts'
import type { FleetCommand, FleetFacts, FleetSettings, FleetState } from './simulated-fleet.ts'

const settings = JSON.parse(process.argv[2] ?? '') as FleetSettings
const devices: SimulatedDevice[] = []
const deviceProxies: FaultProxy[][] = Array.from({ length: settings.gateways }, () => [])
const redisProxies: FaultProxy[] = []

for (let index = 0; index < settings.devices; index += 1) {
  const device = await SimulatedDevice.start({
    ...settings.pace,
    claimedReaders: settings.claimedReaders,
    index,
    isStranded: (port) => deviceProxies.some((proxies) => proxies[index]?.isStranded(port) === true),
  })
  devices.push(device)
  const { hostname: host, port } = new URL(device.url)
  for (const proxies of deviceProxies) proxies.push(await FaultProxy.start({ host, port: Number(port) }))
}
for (let gateway = 0; gateway < settings.gateways; gateway += 1)
  redisProxies.push(await FaultProxy.start({ path: settings.redisPath }))

process.on('message', (command: FleetCommand) => {
  if (command.kind === 'state') return tell({ kind: 'state', id: command.id, ...state() })
  const proxies = command.of === 'redis' ? [redisProxies[command.gateway]] : deviceProxies[command.gateway]
  for (const proxy of proxies ?? []) {
    if (command.kind === 'cut') proxy?.cut()
    else proxy?.mend()
  }
  tell({ kind: 'done', id: command.id })
})
process.once('disconnect', () => process.exit())

tell({
  kind: 'ready',
  devicePorts: deviceProxies.map((proxies) => proxies.map(({ port }) => port)),
  redisPorts: redisProxies.map(({ port }) => port),
})

function state(): FleetState {
  return {
    readers: devices.map((device) => device.readers),
    mostReaders: devices.map((device) => device.mostReaders),
    held: deviceProxies.flat().reduce((sum, proxy) => sum + proxy.held, 0),
    refused: devices.reduce((sum, device) => sum + device.refused, 0),
    served: devices.reduce((sum, device) => sum + device.served, 0),
    fifths: devices.flatMap((device) => device.fifths),
  }
}

function tell(
  message:
    | ({ kind: 'ready' } & FleetFacts)
    | ({ kind: 'state'; id: number } & FleetState)
    | { kind: 'done'; id: number },
): void {
  process.send?.(message)
}
