/** Times of the mode vendorB_erspan3, derived from a whole stream the slow way. */
import type { PcapRecord } from '../packets/pcap-records.ts'
import { counterDistance, distance, ethernetContent } from './reference-ethernet.ts'

const SECOND_NS = 1_000_000_000n
const FULL_TIME_LIMIT_NS = 7n * 86_400n * SECOND_NS
/** Vendor units cannot be determined until this much NIC time has passed in a session. */
const UNIT_KNOWN_AFTER_NS = 1_000_000n

interface Unit {
  readonly nanos: bigint
  readonly ticks: bigint
}

/** The units by granularity; 3 is the vendor's own. */
const UNITS: Readonly<Record<number, Unit>> = {
  0: { nanos: 100_000n, ticks: 1n },
  1: { nanos: 100n, ticks: 1n },
}
const VENDOR_UNITS: readonly [Unit, Unit] = [
  { nanos: 1n, ticks: 1n },
  { nanos: 12n, ticks: 5n },
]

interface Header {
  /** Scope of a free-running counter. */
  readonly session: string
  readonly granularity: number
  readonly low: bigint
  /** The sub-header: platform id and its last word. */
  readonly sub: { readonly platform: number; readonly high: bigint } | undefined
}

interface Anchor {
  readonly ns: bigint
  readonly counter: bigint
  unit: Unit | undefined
}

/** Time of each packet of a whole stream in stored order; undefined = no vendor time. */
export function erspanTimes(packets: readonly PcapRecord[]): (bigint | undefined)[] {
  const anchors = new Map<string, Anchor>()
  return packets.map(({ ns, captured }) => {
    const header = readHeader(captured)
    if (header === undefined) return undefined
    const { granularity, low, sub } = header
    if (granularity === 3 && sub && [0, 3, 7].includes(sub.platform)) {
      return within(FULL_TIME_LIMIT_NS, (sub.high << 32n) | low, ns)
    }
    if (granularity !== 2) return freeRunningTime(anchors, header, ns)
    if (low >= SECOND_NS) return undefined
    if (sub && [5, 6].includes(sub.platform)) {
      return within(FULL_TIME_LIMIT_NS, sub.high * SECOND_NS + low, ns)
    }
    return nearestSecond(low, ns)
  })
}

function within(limitNs: bigint, timeNs: bigint, nicNs: bigint): bigint | undefined {
  return distance(timeNs, nicNs) > limitNs ? undefined : timeNs
}

function nearestSecond(fractionNs: bigint, nicNs: bigint): bigint {
  const second = nicNs - (nicNs % SECOND_NS)
  const candidates = [second - SECOND_NS, second, second + SECOND_NS].map((start) => start + fractionNs)
  return candidates.reduce((best, time) => (distance(time, nicNs) < distance(best, nicNs) ? time : best))
}

function freeRunningTime(anchors: Map<string, Anchor>, header: Header, nicNs: bigint): bigint | undefined {
  const { session, granularity, low } = header
  const anchor = anchors.get(session) ?? { ns: nicNs, counter: low, unit: UNITS[granularity] }
  anchors.set(session, anchor)
  const nicDistanceNs = nicNs - anchor.ns
  const distanceBy = (unit: Unit): bigint =>
    counterDistance({ from: anchor.counter, to: low, bits: 32n }, unit, nicDistanceNs)
  if (anchor.unit === undefined) {
    if (nicDistanceNs < UNIT_KNOWN_AFTER_NS) return undefined
    const [one, more] = VENDOR_UNITS
    const isMore = distance(distanceBy(more), nicDistanceNs) < distance(distanceBy(one), nicDistanceNs)
    anchor.unit = isMore ? more : one
  }
  // Two ticks of any unit take less than a second.
  return within(SECOND_NS, anchor.ns + distanceBy(anchor.unit), nicNs)
}

function readHeader(frame: Buffer): Header | undefined {
  const outer = readOuter(frame)
  if (outer === undefined || outer.gre.length < 4) return undefined
  const { gre, source } = outer
  const flags = gre.readUInt16BE(0)
  if (gre.readUInt16BE(2) !== 0x22eb || (flags & 0x4007) !== 0) return undefined
  const optionalFields = [0x8000, 0x2000, 0x1000].filter((flag) => (flags & flag) !== 0).length
  const erspan = gre.subarray(4 + 4 * optionalFields)
  if (erspan.length < 12 || erspan.readUInt8(0) >> 4 !== 2) return undefined
  const last = erspan.readUInt16BE(10)
  const hasSub = (last & 1) === 1
  if (hasSub && erspan.length < 20) return undefined
  const granularity = (last >> 1) & 3
  return {
    session: `${source} ${erspan.readUInt16BE(2) & 0x3ff} ${granularity}`,
    granularity,
    low: BigInt(erspan.readUInt32BE(4)),
    sub: hasSub ? { platform: erspan.readUInt8(12) >> 2, high: BigInt(erspan.readUInt32BE(16)) } : undefined,
  }
}

/** The GRE packet in the outer IP packet, and its sender. */
function readOuter(frame: Buffer): { readonly gre: Buffer; readonly source: string } | undefined {
  const content = ethernetContent(frame)
  if (content === undefined) return undefined
  const ip = frame.subarray(content.offset)
  if (content.etherType === 0x0800 && ip.length >= 20 && ip[9] === 47) {
    return { gre: ip.subarray(20), source: `4 ${ip.toString('hex', 12, 16)}` }
  }
  if (content.etherType === 0x86dd && ip.length >= 40 && ip[6] === 47) {
    return { gre: ip.subarray(40), source: `6 ${ip.toString('hex', 8, 24)}` }
  }
  return undefined
}
