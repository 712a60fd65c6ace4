import { makePacket, makePcap } from '../packets/packet-maker.ts'
import { FakeDevice } from './fake-device.ts'

export const FLEET_BEGIN_NS = 1_700_000_000_000_000_000n
export const FLEET_RANGE = `TSBegin=${FLEET_BEGIN_NS}&TSEnd=${FLEET_BEGIN_NS + 3_600_000_000_000n}`

/** The PCAP served by the device of this number: packets every 3 ms, slightly later on each device. */
export function fleetPcap(index: number, packets: number, linkType = 1): Buffer {
  const records = Array.from({ length: packets }, (_, number) => {
    const ns = FLEET_BEGIN_NS + BigInt(number) * 3_000_000n + BigInt(index) * 1_000_000n
    return makePacket(ns, `device ${index} packet ${number}`, 60 + ((number * 37) % 900))
  })
  return makePcap(records, { linkType })
}

/** Starts three devices d0, d1, d2; sites are not set: a test adds what it needs. */
export async function startFakeFleet(packets: number, names = ['d0', 'd1', 'd2']): Promise<FakeDevice[]> {
  return Promise.all(names.map((name, index) => FakeDevice.start(name, fleetPcap(index, packets))))
}
