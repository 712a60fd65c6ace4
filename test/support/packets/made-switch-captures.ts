/** Captures of packets stamped by switches, whose clocks a reader must track from packet to packet. */
import { crc32 } from 'node:zlib'
import { seededRandom } from '../seeded-random.ts'
import * as layer from './packet-layers.ts'
import { PROTOCOL, TYPE } from './packet-layers.ts'
import { makePcap } from './packet-maker.ts'
import type { PcapRecord } from './pcap-records.ts'

const SECOND_NS = 1_000_000_000n
/** Delay of a capture. */
const LATE_NS = 10_000_000n

/** The captures by file name. */
export function madeSwitchCaptures(startNs: bigint): [string, Buffer][] {
  return [
    ['switch-ticks-appended.pcap', makePcap(ticked(startNs, 'appended'))],
    ['switch-ticks-for-fcs.pcap', makePcap(ticked(startNs, 'for-fcs'))],
    ['switch-counter-mirrored.pcap', makePcap(mirrored(startNs))],
    ['switch-time-header.pcap', makePcap(withHeader(startNs))],
  ]
}

/**
 * A 350 MHz counter, of which packets contain 31 bits, and one key frame per second with its time. The tick precedes
 * the frame check sequence, or replaces it.
 */
function ticked(startNs: bigint, place: 'appended' | 'for-fcs'): PcapRecord[] {
  const random = seededRandom(7_150)
  const tickAt = (ns: bigint) => 2n ** 40n - 5n + ((ns - startNs) * 7n) / 20n
  const records: PcapRecord[] = []
  for (let second = 0n; second < 12n; second++) {
    const keyNs = startNs + second * SECOND_NS
    records.push(record(keyNs + LATE_NS, withFcs(keyFrame(tickAt(keyNs), keyNs))))
    for (let index = 1n; index <= 3n; index++) {
      const ns = keyNs + index * 250_000_000n + BigInt(random.integer(0, 100_000_000))
      const datagram = layer.udp(4_000, 4_001, Buffer.alloc(random.integer(18, 200), 'z'))
      const frame = layer.ethernet(TYPE.ipv4, layer.ipv4(PROTOCOL.udp, datagram))
      const stamped = Buffer.concat([frame, tickWord(tickAt(ns))])
      records.push(record(ns + LATE_NS, place === 'appended' ? withFcs(stamped) : stamped))
    }
  }
  return records
}

/** Version 2; it has no tick of its own. */
function keyFrame(tick: bigint, utcNs: bigint): Buffer {
  const fields = [layer.bytesOf(tick, 8), layer.bytesOf(utcNs, 8), Buffer.alloc(8), layer.bytesOf(1, 8)]
  const more = [layer.bytesOf(1, 8), layer.bytesOf(tick, 8), Buffer.alloc(12), layer.hex('0200')]
  const ip = layer.ipv4(253, Buffer.concat([...fields, ...more]), { to: 'all' })
  return Buffer.concat([layer.ethernet(TYPE.ipv4, ip, { from: 9, to: 'all' }), Buffer.alloc(4)])
}

/** Bit 7 is always 0; the low seven bits of the tick are below it. */
function tickWord(tick: bigint): Buffer {
  const low = BigInt.asUintN(31, tick)
  return layer.bytesOf(((low >> 7n) << 8n) | (low & 127n), 4)
}

function withFcs(frame: Buffer): Buffer {
  const check = Buffer.alloc(4)
  check.writeUInt32LE(crc32(frame))
  return Buffer.concat([frame, check])
}

/** Mirrored packets of one session with a counter of 2.4 ns, which wraps once. */
function mirrored(startNs: bigint): PcapRecord[] {
  const first = 0xa359_5bffn
  return Array.from({ length: 9 }, (_, index) => {
    const sinceNs = BigInt(index) * 1_024_000_001n
    const inner = layer.ethernet(
      TYPE.ipv4,
      layer.ipv4(PROTOCOL.icmp, layer.icmpEcho(false, index, Buffer.alloc(56))),
    )
    const header = layer.gre(TYPE.erspan3, layer.erspan3(20, 3, first + (sinceNs * 5n) / 12n, inner))
    return record(startNs + sinceNs, layer.ethernet(TYPE.ipv4, layer.ipv4(PROTOCOL.gre, header)))
  })
}

/** Both header forms: 32-bit seconds, or their low 16 bits; in UTC or TAI, of both hardware generations. */
function withHeader(startNs: bigint): PcapRecord[] {
  const random = seededRandom(7_280)
  const versions = [0x0010, 0x0011, 0x0110, 0x0111, 0x0020, 0x0021, 0x0120, 0x0121]
  return Array.from({ length: 48 }, (_, index) => {
    const version = versions[index % 8] ?? 0
    const ns = startNs + BigInt(index) * 500_000_000n
    // The capture is as late as those of a NIC with its own clock are.
    const stampNs = ns - 147_000_000n + BigInt(random.integer(0, 100_000))
    const seconds =
      (version & 0x00f0) === 0x0010
        ? layer.bytesOf(stampNs / SECOND_NS, 4)
        : layer.bytesOf(stampNs / SECOND_NS, 2)
    const time = Buffer.concat([
      layer.bytesOf(1, 2),
      layer.bytesOf(version, 2),
      seconds,
      layer.bytesOf(stampNs % SECOND_NS, 4),
    ])
    const datagram = layer.udp(4_000, 4_001, Buffer.alloc(54, 'y'))
    const packet = layer.ipv4(PROTOCOL.udp, datagram)
    const rest = random.pick([
      Buffer.concat([layer.bytesOf(TYPE.ipv4, 2), packet]),
      Buffer.concat([layer.bytesOf(TYPE.vlan, 2), layer.tagged(100, TYPE.ipv4, packet)]),
      Buffer.concat([layer.bytesOf(TYPE.mpls, 2), layer.mpls([16_404], packet)]),
    ])
    return record(ns, layer.ethernet(TYPE.switchTime, Buffer.concat([time, rest])))
  })
}

function record(ns: bigint, captured: Buffer): PcapRecord {
  return { ns, originalLength: captured.length, captured }
}
