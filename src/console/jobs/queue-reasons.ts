/** Why requests wait: the devices that they need have no free stream, or earlier requests are ahead of them. */
import type { DeviceReport } from '../base/devices.ts'
import type { QueuePlace } from '../base/queue.ts'

/** A device without a free stream for the request. */
export interface BusyDevice {
  readonly device: string
  readonly used: number
  readonly usable: number
  /** Whether it has a free stream, but not for exports: one is kept for people. */
  readonly isKept: boolean
}

type Slots = Pick<DeviceReport, 'name' | 'slotsTotal' | 'slotsLimit'>
type Request = Pick<QueuePlace, 'class' | 'state'> & { readonly devices: readonly string[] }

/** Empty: its devices have free streams, which earlier requests will get. */
export function busyDevices(
  request: Request,
  requests: readonly Request[],
  devices: readonly Slots[],
): readonly BusyDevice[] {
  const holders = requests.filter(({ state }) => state !== 'waiting')
  const all = streamsOf(holders)
  const bulk = streamsOf(holders.filter((holder) => holder.class === 'bulk'))
  const slotsOf = new Map(devices.map((device) => [device.name, device.slotsLimit ?? device.slotsTotal]))
  return request.devices.flatMap((device): readonly BusyDevice[] => {
    const usable = slotsOf.get(device)
    if (usable === undefined) return []
    const used = all.get(device) ?? 0
    if (used >= usable) return [{ device, used, usable, isKept: false }]
    const [usedByBulk, usableByBulk] = [bulk.get(device) ?? 0, Math.max(1, usable - 1)]
    if (request.class !== 'bulk' || usedByBulk < usableByBulk) return []
    return [{ device, used: usedByBulk, usable: usableByBulk, isKept: true }]
  })
}

/** Device -> the number of requests that hold a stream of it. */
function streamsOf(holders: readonly Request[]): ReadonlyMap<string, number> {
  const streams = Map.groupBy(
    holders.flatMap(({ devices }) => devices),
    (device) => device,
  )
  return new Map([...streams].map(([device, held]) => [device, held.length]))
}
