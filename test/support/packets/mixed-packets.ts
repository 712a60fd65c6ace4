/**
 * Ethernet packets of several kinds, also within VLAN tags and VXLAN tunnels, whose filters can be compared with
 * tcpdump.
 */
import type { SeededRandom } from '../seeded-random.ts'
import type { PcapRecord } from './pcap-records.ts'

const ETHERNET_BYTES = 14
const IPV4 = 0x0800
const VLAN = 0x8100
const VXLAN_PORT = 4_789

/** Random, about 90 bytes or more of captured data. */
export function randomMixedPacket(random: SeededRandom, ns: bigint): PcapRecord {
  const captured = wrapped(random, randomInner(random))
  return { ns, originalLength: captured.length, captured }
}

function randomInner(random: SeededRandom): Buffer {
  const isUdp = random.next() < 0.6
  const ports = [random.integer(1_024, 65_535), random.pick([53, 80, 123, 443])] as const
  const payload = Buffer.alloc(random.integer(30, 200), random.integer(0, 255))
  const reversed = random.next() < 0.5 ? ([ports[1], ports[0]] as const) : ports
  return ethernet(IPV4, ipv4(random, isUdp ? 17 : 6, isUdp ? udp(reversed, payload) : tcp(reversed, payload)))
}

function wrapped(random: SeededRandom, inner: Buffer): Buffer {
  const kind = random.next()
  if (kind < 0.2) return tagged(inner, random.integer(1, 4))
  if (kind < 0.25) return tagged(tagged(inner, random.integer(1, 4)), random.integer(1, 4))
  if (kind < 0.45) {
    const header = Buffer.alloc(8)
    header.writeUInt8(0x08, 0)
    header.writeUIntBE(random.integer(1, 9), 4, 3)
    const outer = udp([random.integer(1_024, 65_535), VXLAN_PORT], Buffer.concat([header, inner]))
    return ethernet(IPV4, ipv4(random, 17, outer))
  }
  return inner
}

function tagged(frame: Buffer, vlan: number): Buffer {
  const tag = Buffer.alloc(4)
  tag.writeUInt16BE(VLAN, 0)
  tag.writeUInt16BE(vlan, 2)
  return Buffer.concat([frame.subarray(0, 12), tag, frame.subarray(12)])
}

function ethernet(type: number, payload: Buffer): Buffer {
  const header = Buffer.alloc(ETHERNET_BYTES, 2)
  header.writeUInt16BE(type, 12)
  return Buffer.concat([header, payload])
}

function ipv4(random: SeededRandom, protocol: number, payload: Buffer): Buffer {
  const header = Buffer.alloc(20)
  header.writeUInt8(0x45, 0)
  header.writeUInt16BE(20 + payload.length, 2)
  header.writeUInt8(64, 8)
  header.writeUInt8(protocol, 9)
  for (const offset of [12, 16]) header.set([10, 0, 0, random.integer(1, 9)], offset)
  return Buffer.concat([header, payload])
}

function udp([source, destination]: readonly [number, number], payload: Buffer): Buffer {
  const header = Buffer.alloc(8)
  header.writeUInt16BE(source, 0)
  header.writeUInt16BE(destination, 2)
  header.writeUInt16BE(8 + payload.length, 4)
  return Buffer.concat([header, payload])
}

function tcp([source, destination]: readonly [number, number], payload: Buffer): Buffer {
  const header = Buffer.alloc(20)
  header.writeUInt16BE(source, 0)
  header.writeUInt16BE(destination, 2)
  header.writeUInt8(0x50, 12)
  return Buffer.concat([header, payload])
}
