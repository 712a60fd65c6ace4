/** Captures with packets of every form that switches send, and their expected meaning. */

import { SwitchTraffic } from '../packets/switch-traffic.ts'
import { randomVendorPacket } from '../packets/vendor-packets.ts'
import type { SeededRandom } from '../seeded-random.ts'
import { type StoredPacket, withClockTimes } from './reference-download.ts'

export interface CapturePlan {
  readonly name: string
  readonly ports: number
  readonly packets: number
  readonly startNs: bigint
  /** Upper bounds of gaps between packets, in nanoseconds: each gap is random, up to one of these chosen at random. */
  readonly gapsNs: readonly number[]
  /** Share of gaps so long that no key frame covers them. */
  readonly longGapShare: number
}

const LONG_GAP_NS = 31_000_000_000

/** The streams of the ports, each in stored order; every port has a packet. */
export function makeReferenceCapture(random: SeededRandom, plan: CapturePlan): StoredPacket[][] {
  const streams: StoredPacket[][] = Array.from({ length: plan.ports }, () => [])
  const switches = streams.map(() => new SwitchTraffic(random, plan.startNs))
  let ns = plan.startNs
  for (let index = 0; index < plan.packets; index++) {
    const port = index < plan.ports ? index : random.integer(0, plan.ports - 1)
    const text = `${plan.name} packet ${index}`
    const packet =
      random.next() < 0.5 ? randomVendorPacket(random, ns, text) : switches[port]?.packet(ns, text)
    if (packet === undefined) throw new Error(`there is no port ${port}`)
    streams[port]?.push({ ...packet, port })
    ns += BigInt(
      random.next() < plan.longGapShare ? LONG_GAP_NS : random.integer(0, random.pick(plan.gapsNs)),
    )
  }
  return streams.map(withClockTimes)
}
