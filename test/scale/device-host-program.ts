/** A process of simulated devices. Its parent is device-host.ts. */
import { SimulatedDevice } from '../support/devices/simulated-device.ts'
import type { DeviceMood, HostCommand, HostSettings, HostState } from './device-host.ts'

const {
  first,
  devices: count,
  captures,
  sendsWholeLists = false,
  pace,
} = JSON.parse(process.argv[2] ?? '') as HostSettings
const devices: SimulatedDevice[] = []
const refusing = new Set<SimulatedDevice>()
for (let index = first; index < first + count; index += 1)
  devices.push(await SimulatedDevice.start({ ...pace, captures, sendsWholeLists, index }))

process.on('message', (command: HostCommand) => void obey(command))
process.once('disconnect', () => process.exit())
process.send?.(devices.map(({ url }) => url))

async function obey(command: HostCommand): Promise<void> {
  if (command.kind === 'mood') for (const index of command.devices) await setMood(index, command.mood)
  process.send?.({ id: command.id, state: state() })
}

async function setMood(index: number, mood: DeviceMood): Promise<void> {
  const device = devices[index - first]
  if (device === undefined) throw new Error(`device ${index} is not of this process`)
  device.isSilent = mood === 'silent'
  if (mood === 'refusing') {
    refusing.add(device)
    await device.powerOff()
  } else if (refusing.delete(device)) await device.powerOn()
}

function state(): HostState {
  const sum = (of: (device: SimulatedDevice) => number) => devices.reduce((all, one) => all + of(one), 0)
  return {
    answered: sum(({ answered }) => answered),
    served: sum(({ served }) => served),
    fifths: sum(({ fifths }) => fifths.length),
    mostReaders: Math.max(...devices.map(({ mostReaders }) => mostReaders)),
  }
}
