/**
 * Times of the modes vendorA7150_overwrite and vendorA7150_insert, derived the slow way: for each packet, searches all
 * previous packets for its key frame.
 */
import { crc32 } from 'node:zlib'
import type { PcapRecord } from '../packets/pcap-records.ts'
import { counterDistance, distance, ethernetContent } from './reference-ethernet.ts'

export type TickPlace = 'overwrite' | 'insert'

interface KeyFrame {
  readonly nicNs: bigint
  readonly tick: bigint
  readonly utcNs: bigint
}

const TICK = { nanos: 20n, ticks: 7n }
const TICK_BITS = 31n
const MAX_AGE_NS = 30_000_000_000n
const MAX_DIFFERENCE_NS = 100_000_000n
/** PCAP has 32 bits for seconds since 1970. */
const PCAP_END_NS = 2n ** 32n * 1_000_000_000n

/** Time of each packet of a whole stream in stored order; undefined = no vendor time. */
export function a7150Times(packets: readonly PcapRecord[], place: TickPlace): (bigint | undefined)[] {
  const keys = packets.map(readKeyFrame)
  return packets.map((packet, index) => {
    const key = keys.slice(0, index).findLast((candidate) => candidate !== undefined)
    const tick = readTick(packet, place)
    if (key === undefined || tick === undefined || packet.ns - key.nicNs > MAX_AGE_NS) return undefined
    const nicDistanceNs = packet.ns - key.nicNs
    const vendorDistanceNs = counterDistance(
      { from: key.tick, to: tick, bits: TICK_BITS },
      TICK,
      nicDistanceNs,
    )
    if (distance(vendorDistanceNs, nicDistanceNs) > MAX_DIFFERENCE_NS) return undefined
    return key.utcNs + vendorDistanceNs
  })
}

/** The version follows from the length of the IP packet; both begin with the counter and UTC. */
function readKeyFrame({ ns, captured }: PcapRecord): KeyFrame | undefined {
  const content = ethernetContent(captured)
  if (content?.etherType !== 0x0800) return undefined
  const ip = captured.subarray(content.offset)
  if (ip.length < 66 || ip[0] !== 0x45 || ip[9] !== 253) return undefined
  const length = ip.readUInt16BE(2)
  if ((length !== 66 && length !== 82) || ip.length < length) return undefined
  const utcNs = ip.readBigUInt64BE(28)
  // The switch has no time yet: treated as if it had sent nothing.
  if (utcNs === 0n || utcNs >= PCAP_END_NS) return undefined
  return { nicNs: ns, tick: BigInt.asUintN(31, ip.readBigUInt64BE(20)), utcNs }
}

/** A correct frame check sequence was not overwritten; an inserted tick precedes it. */
function readTick({ captured, originalLength }: PcapRecord, place: TickPlace): bigint | undefined {
  if (captured.length < originalLength) return undefined
  const hasFcs = captured.readUInt32LE(captured.length - 4) === crc32(captured.subarray(0, -4))
  if (hasFcs && place === 'overwrite') return undefined
  const word = captured.readUInt32BE(captured.length - (hasFcs ? 8 : 4))
  if (word === 0 || (word & 0x80) !== 0) return undefined
  return BigInt(Math.floor(word / 256) * 128 + (word % 128))
}
