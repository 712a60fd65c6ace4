/**
 * Small captures with everything that a capture may contain, for tests that compare with tcpdump, tshark and others.
 * The same bytes each time.
 */
import { type SeededRandom, seededRandom } from '../seeded-random.ts'
import { madeSwitchCaptures } from './made-switch-captures.ts'
import * as layer from './packet-layers.ts'
import { PROTOCOL, TYPE } from './packet-layers.ts'
import { type MadePcapOptions, makePcap } from './packet-maker.ts'
import type { PcapRecord } from './pcap-records.ts'
import { makePcapng, type PortRecord } from './pcapng-maker.ts'

const SEED = 20_261_127
export const MADE_START_NS = 1_790_000_000_123_456_789n
const LINK_TYPE = { ppp: 9, raw: 101, cooked: 113, cooked2: 276 } as const
/** Above 64 KiB. */
const BIG_BYTES = 70_000

/** The captures by file name. */
export function madeCaptures(): ReadonlyMap<string, Buffer> {
  return new Map([...pcaps(), ...pcapngs(), ...madeSwitchCaptures(MADE_START_NS)])
}

function pcaps(): [string, Buffer][] {
  const of = (
    name: string,
    make: FrameMaker,
    count: number,
    options: MadePcapOptions = {},
  ): [string, Buffer] => [`${name}.pcap`, makePcap(records(name, make, count), options)]
  const mixed = records('mixed', mixedFrame, 120)
  return [
    of('plain', plainFrame, 120),
    of('plain-microseconds', plainFrame, 60, { nanoseconds: false }),
    ['mixed.pcap', makePcap(mixed)],
    ['mixed-out-of-order.pcap', makePcap(shuffled(mixed))],
    [
      'mixed-truncated.pcap',
      makePcap(
        mixed.map((record, index) => cut(record, 10 + (index % 87))),
        { snaplen: 96 },
      ),
    ],
    ['big-endian.pcap', swapped(makePcap(mixed))],
    of('vlans', vlanFrame, 60),
    of('interface-tags', interfaceTagFrame, 20),
    of('fragments', fragmentFrame, 40),
    of('jumbo', jumboFrame, 6),
    of('odd-types', oddFrame, 40),
    of('gre', greFrame, 80),
    of('erspan', erspanFrame, 60),
    of('vxlan', vxlanFrame, 60),
    of('geneve', geneveFrame, 60),
    of('mpls', mplsFrame, 60),
    of('gtp', gtpFrame, 30),
    of('ip-in-ip', ipInIpFrame, 30),
    ['big-tcp.pcap', makePcap([{ ns: MADE_START_NS, ...whole(bigTcpFrame()) }])],
    of('raw-ip', plainPacket, 40, { linkType: LINK_TYPE.raw }),
    of('ppp', pppFrame, 30, { linkType: LINK_TYPE.ppp }),
    of('cooked', cookedFrame, 30, { linkType: LINK_TYPE.cooked }),
    of('cooked-v2', cooked2Frame, 30, { linkType: LINK_TYPE.cooked2 }),
    ['empty.pcap', makePcap([])],
    ['timestamp_invalid.pcap', withLongFractions(makePcap(mixed.slice(0, 6)))],
    ['no-bytes.pcap', makePcap(mixed.slice(0, 5).map((record) => cut(record, 0)))],
    ['year-2105.pcap', makePcap([{ ...(mixed[0] as PcapRecord), ns: (2n ** 32n - 1n) * 1_000_000_000n }])],
  ]
}

function pcapngs(): [string, Buffer][] {
  // Packets with equal times go to the same port, because the order between ports is not the file's order.
  const onPorts = (ports: bigint, packets: readonly PcapRecord[]): PortRecord[] =>
    packets.map((packet) => ({ ...packet, port: Number(packet.ns % ports) }))
  const one = records('one-interface', mixedFrame, 40)
  const late = { ...(one[0] as PcapRecord), ns: 4_340_000_000_000_000_000n }
  return [
    ['empty.pcapng', makePcapng(1, [])],
    ['one-interface.pcapng', makePcapng(1, onPorts(1n, one))],
    ['three-interfaces.pcapng', makePcapng(3, onPorts(3n, records('three-interfaces', mixedFrame, 60)))],
    // Later than PCAP can represent.
    ['year-2107.pcapng', makePcapng(1, onPorts(1n, [late]))],
  ]
}

type FrameMaker = (random: SeededRandom) => Buffer

/** Every third packet has the time of the previous one, and every twentieth occurs twice. */
function records(name: string, make: FrameMaker, count: number): PcapRecord[] {
  const random = seededRandom([...name].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), SEED))
  const made: PcapRecord[] = []
  let ns = MADE_START_NS
  while (made.length < count) {
    if (random.next() < 2 / 3) ns += BigInt(random.integer(1, 40_000_000))
    const record = { ns, ...whole(make(random)) }
    made.push(record)
    if (random.next() < 1 / 20) made.push(record)
  }
  return made
}

function whole(captured: Buffer): Omit<PcapRecord, 'ns'> {
  return { originalLength: captured.length, captured }
}

function cut(record: PcapRecord, bytes: number): PcapRecord {
  return { ...record, captured: record.captured.subarray(0, bytes) }
}

/** Some of the times go back, some of them far. */
function shuffled(packets: readonly PcapRecord[]): PcapRecord[] {
  const random = seededRandom(SEED)
  return packets.map(({ ns, ...rest }) => ({ ...rest, ns: ns - BigInt(random.integer(0, 3)) * 100_000_000n }))
}

/** The same file as written by a machine with the other byte order. */
function swapped(file: Buffer): Buffer {
  const bytes = Buffer.from(file)
  for (const at of [0, 8, 12, 16, 20]) bytes.subarray(at, at + 4).swap32()
  bytes.subarray(4, 8).swap16()
  for (let at = 24; at < bytes.length; ) {
    const captured = file.readUInt32LE(at + 8)
    bytes.subarray(at, at + 16).swap32()
    at += 16 + captured
  }
  return bytes
}

/** Fractions of a second or more, some with their highest bit set. */
function withLongFractions(file: Buffer): Buffer {
  const bytes = Buffer.from(file)
  const fractions = [1_000_000_000, 1_500_000_000, 2 ** 31 - 1, 2 ** 31, 4_000_000_000, 2 ** 32 - 1]
  let at = 24
  for (const fraction of fractions) {
    bytes.writeUInt32LE(fraction, at + 4)
    at += 16 + bytes.readUInt32LE(at + 8)
  }
  return bytes
}

const someEnds = (random: SeededRandom) => ({ from: random.integer(1, 9), to: random.integer(1, 9) })

const TEXTS = [
  'GET /index.html HTTP/1.1\r\nHost: example.test\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 12345678\r\n\r\n',
  'SSH-2.0-OpenSSH_9.2\r\n',
  'ssh-ed25519 key exchange',
  '35=D|49=BUYER|56=SELLER|34=0000123456|',
]
/** MSS, window scale and timestamps, as in a handshake. */
const SYN_OPTIONS = layer.hex('020405b4', '01030307', '0402', '080a', '0000000100000000', '0000')
const TIME_OPTIONS = layer.hex('0101', '080a', '0000000200000001')

function tcpSegment(random: SeededRandom): Buffer {
  const [near, far] = [random.integer(1_024, 65_535), random.pick([22, 80, 443, 8_080])]
  const ports = random.next() < 0.5 ? ([near, far] as const) : ([far, near] as const)
  const sequence = random.integer(0, 2 ** 32 - 1)
  const flags = random.pick([0x02, 0x12, 0x10, 0x18, 0x11, 0x14])
  if ((flags & 0x02) !== 0)
    return layer.tcp(...ports, Buffer.alloc(0), { flags, sequence, options: SYN_OPTIONS })
  const payload = flags === 0x18 ? Buffer.from(random.pick(TEXTS)) : Buffer.alloc(0)
  return layer.tcp(...ports, payload, {
    flags,
    sequence,
    options: random.pick([Buffer.alloc(0), TIME_OPTIONS]),
  })
}

function udpDatagram(random: SeededRandom): Buffer {
  const near = random.integer(1_024, 65_535)
  const name = `host${random.integer(1, 99)}.example.test`
  const id = random.integer(0, 65_535)
  switch (random.integer(0, 3)) {
    case 0:
      return layer.udp(near, 53, layer.dns(id, name))
    case 1:
      return layer.udp(53, near, layer.dns(id, name, layer.hex('0a000005')))
    case 2:
      return layer.udp(
        near,
        9_999,
        Buffer.alloc(random.integer(0, 400), random.pick(['a', 'Z', '7', '\xff'])),
      )
    default:
      return layer.udp(514, 514, Buffer.from(`<13>app[${id}]: ${random.pick(TEXTS)}`))
  }
}

function ipv4Packet(random: SeededRandom): Buffer {
  const fields = {
    ...someEnds(random),
    id: random.integer(0, 65_535),
    ttl: random.pick([1, 31, 64, 255]),
    fragment: random.pick([0, 0x4000]),
    options: random.pick([Buffer.alloc(0), Buffer.alloc(0), Buffer.alloc(0), layer.hex('94040000')]),
  }
  const kind = random.next()
  if (kind < 0.45) return layer.ipv4(PROTOCOL.tcp, tcpSegment(random), fields)
  if (kind < 0.8) return layer.ipv4(PROTOCOL.udp, udpDatagram(random), fields)
  const echo = layer.icmpEcho(random.next() < 0.5, random.integer(0, 999), Buffer.alloc(32, 'ping 12345 '))
  return layer.ipv4(PROTOCOL.icmp, echo, fields)
}

function ipv6Packet(random: SeededRandom): Buffer {
  const kind = random.next()
  if (kind < 0.45) return layer.ipv6(PROTOCOL.tcp, tcpSegment(random), someEnds(random))
  if (kind < 0.8) return layer.ipv6(PROTOCOL.udp, udpDatagram(random), someEnds(random))
  const echo = Buffer.concat([layer.hex('8000000000070001'), Buffer.alloc(24, 'x')])
  return layer.ipv6(PROTOCOL.icmp6, echo, someEnds(random))
}

function plainPacket(random: SeededRandom): Buffer {
  return random.next() < 0.7 ? ipv4Packet(random) : ipv6Packet(random)
}

/** A type and its payload. */
function typed(random: SeededRandom): readonly [number, Buffer] {
  const kind = random.next()
  if (kind < 0.6) return [TYPE.ipv4, ipv4Packet(random)]
  if (kind < 0.9) return [TYPE.ipv6, ipv6Packet(random)]
  return [TYPE.arp, layer.arp(random.next() < 0.5, someEnds(random))]
}

function plainFrame(random: SeededRandom): Buffer {
  const { from, to } = someEnds(random)
  return layer.ethernet(...typed(random), { from, to: random.next() < 0.1 ? 'all' : to })
}

const MIXED: readonly FrameMaker[] = [
  plainFrame,
  plainFrame,
  vlanFrame,
  greFrame,
  vxlanFrame,
  geneveFrame,
  mplsFrame,
  oddFrame,
]

function mixedFrame(random: SeededRandom): Buffer {
  return random.pick(MIXED)(random)
}

/** One to three tags, the outer ones of a service provider, or a pre-standard one. */
function vlanFrame(random: SeededRandom): Buffer {
  const tags = random.integer(1, 3)
  let [type, payload] = typed(random)
  for (let tag = 0; tag < tags; tag++) {
    // With and without priority.
    payload = layer.tagged(random.pick([100, 7, 0x6000 + 100]), type, payload)
    type = tag === 0 ? TYPE.vlan : random.pick([TYPE.serviceVlan, TYPE.vlan, TYPE.oldVlan])
  }
  return layer.ethernet(type, payload, someEnds(random))
}

/** Tags that identify interfaces of virtual machines (VN-Tag), also before a VLAN tag. */
function interfaceTagFrame(random: SeededRandom): Buffer {
  const [type, payload] = typed(random)
  const isInVlan = random.next() < 0.5
  const [next, rest] = isInVlan ? [TYPE.vlan, layer.tagged(400, type, payload)] : [type, payload]
  const tag = Buffer.concat([layer.bytesOf(random.integer(1, 99) * 65_536, 4), layer.bytesOf(next, 2), rest])
  return layer.ethernet(TYPE.interfaceTag, tag, someEnds(random))
}

/** The first, a middle or the last fragment, of IPv4 or IPv6. */
function fragmentFrame(random: SeededRandom): Buffer {
  const id = random.integer(1, 9)
  const [offset, more] = random.pick([
    [0, 1],
    [4, 1],
    [8, 0],
  ])
  const piece = offset === 0 ? udpDatagram(random).subarray(0, 32) : Buffer.alloc(32, 'fragment')
  if (random.next() < 0.6) {
    const fragment = more * 0x2000 + offset
    return layer.ethernet(TYPE.ipv4, layer.ipv4(PROTOCOL.udp, piece, { ...someEnds(random), id, fragment }))
  }
  const header = Buffer.concat([
    layer.bytesOf(PROTOCOL.udp * 256, 2),
    layer.bytesOf(offset * 8 + more, 2),
    layer.bytesOf(id, 4),
  ])
  return layer.ethernet(TYPE.ipv6, layer.ipv6(44, Buffer.concat([header, piece]), someEnds(random)))
}

function jumboFrame(random: SeededRandom): Buffer {
  const data = Buffer.alloc(random.integer(8_000, 8_950), 'jumbo ')
  return layer.ethernet(TYPE.ipv4, layer.ipv4(PROTOCOL.udp, layer.udp(5_001, 5_001, data), someEnds(random)))
}

/** Not IP: rare types, frames with a length, loops, and the smallest frames. */
function oddFrame(random: SeededRandom): Buffer {
  const data = Buffer.alloc(random.integer(46, 90), random.integer(0, 255))
  switch (random.integer(0, 4)) {
    case 0:
      return layer.ethernet(random.pick([0x0842, 0x88cc, 0x88f7, 0x9000, 0xffff]), data, someEnds(random))
    case 1:
      // Spanning tree.
      return layer.ethernet(
        38,
        layer.hex('424203', '0000000000', '8000020000000001', '00'.repeat(27)),
        someEnds(random),
      )
    case 2:
      // A length and SNAP.
      return layer.ethernet(
        60,
        Buffer.concat([layer.hex('aaaa03000000', '0800'), ipv4Packet(random)]),
        someEnds(random),
      )
    case 3:
      // IPv4 with a rare protocol, followed by padding.
      return Buffer.concat([
        layer.ethernet(TYPE.ipv4, layer.ipv4(253, layer.hex('01020304'), someEnds(random))),
        Buffer.alloc(22),
      ])
    default:
      return layer.ethernet(TYPE.arp, Buffer.concat([layer.arp(false, someEnds(random)), Buffer.alloc(18)]), {
        from: random.integer(1, 9),
        to: 'all',
      })
  }
}

function overIp(random: SeededRandom, protocol: number, payload: Buffer): Buffer {
  const ends = { from: random.integer(100, 104), to: random.integer(100, 104) }
  const isIpv4 = random.next() < 0.7
  const packet = isIpv4 ? layer.ipv4(protocol, payload, ends) : layer.ipv6(protocol, payload, ends)
  const type = isIpv4 ? TYPE.ipv4 : TYPE.ipv6
  if (random.next() < 0.8) return layer.ethernet(type, packet, ends)
  return layer.ethernet(TYPE.vlan, layer.tagged(200, type, packet), ends)
}

function greFrame(random: SeededRandom): Buffer {
  const fields = {
    hasChecksum: random.next() < 0.3,
    ...(random.next() < 0.4 ? { key: random.integer(0, 99) } : {}),
    ...(random.next() < 0.4 ? { sequence: random.integer(0, 99) } : {}),
  }
  const [type, payload] = random.pick([
    [TYPE.ipv4, ipv4Packet(random)],
    [TYPE.ipv6, ipv6Packet(random)],
    [TYPE.bridged, random.pick([plainFrame, vlanFrame])(random)],
    [TYPE.mpls, layer.mpls([30], ipv4Packet(random))],
  ] as const)
  return overIp(random, PROTOCOL.gre, layer.gre(type, payload, fields))
}

/** Types I, which has no header, II and III. */
function erspanFrame(random: SeededRandom): Buffer {
  const frame = random.pick([plainFrame, vlanFrame])(random)
  const [session, sequence] = [random.integer(1, 9), random.integer(0, 99)]
  const mirrored = random.pick([
    layer.gre(TYPE.erspan, frame),
    layer.gre(TYPE.erspan, layer.erspan2(session, frame), { sequence }),
    layer.gre(TYPE.erspan3, layer.erspan3(session, 0, BigInt(sequence), frame), { sequence }),
  ])
  return overIp(random, PROTOCOL.gre, mirrored)
}

/** A VXLAN frame at the standard port or at Linux's. */
function vxlanFrame(random: SeededRandom): Buffer {
  const frame = random.pick([plainFrame, plainFrame, vlanFrame])(random)
  const port = random.pick([4_789, 4_789, 8_472])
  return overIp(random, PROTOCOL.udp, layer.udp(random.integer(49_152, 65_535), port, layer.vxlan(7, frame)))
}

function geneveFrame(random: SeededRandom): Buffer {
  const options = random.pick([Buffer.alloc(0), layer.hex('0102800100000007')])
  const [type, payload] = random.pick([
    [TYPE.bridged, plainFrame(random)],
    [TYPE.bridged, vlanFrame(random)],
    [TYPE.ipv4, ipv4Packet(random)],
    [TYPE.ipv6, ipv6Packet(random)],
  ] as const)
  const tunnelled = layer.geneve(type, payload, options)
  return overIp(random, PROTOCOL.udp, layer.udp(random.integer(49_152, 65_535), 6_081, tunnelled))
}

/** One to three labels, also in a VLAN; or a pseudowire with a control word, whose label is 5000. */
function mplsFrame(random: SeededRandom): Buffer {
  const labels = Array.from({ length: random.integer(1, 3) }, () => random.integer(16, 99))
  const inner = random.pick([
    layer.mpls(labels, ipv4Packet(random)),
    layer.mpls(labels, ipv6Packet(random)),
    layer.mpls([...labels, 5_000], Buffer.concat([layer.hex('00000000'), plainFrame(random)])),
  ])
  if (random.next() < 0.7) return layer.ethernet(TYPE.mpls, inner, someEnds(random))
  return layer.ethernet(TYPE.vlan, layer.tagged(300, TYPE.mpls, inner), someEnds(random))
}

function gtpFrame(random: SeededRandom): Buffer {
  const extension = random.pick([Buffer.alloc(0), layer.hex('01100100')])
  const tunnelled = layer.gtpUser(random.integer(1, 9), plainPacket(random), extension)
  return overIp(random, PROTOCOL.udp, layer.udp(2_152, 2_152, tunnelled))
}

function ipInIpFrame(random: SeededRandom): Buffer {
  const isIpv4 = random.next() < 0.5
  const protocol = isIpv4 ? PROTOCOL.ipInIp : PROTOCOL.ipv6InIp
  return overIp(random, protocol, isIpv4 ? ipv4Packet(random) : ipv6Packet(random))
}

/** A TCP packet as a NIC passes it on before segmentation: the length fields are 0. */
function bigTcpFrame(): Buffer {
  const inner = layer.ipv4(PROTOCOL.tcp, layer.tcp(40_000, 80, Buffer.alloc(BIG_BYTES, 'big ')), {
    from: 3,
    to: 4,
    totalLength: 0,
  })
  const datagram = layer.udp(50_000, 4_789, layer.vxlan(7, layer.ethernet(TYPE.ipv4, inner)), 0)
  return layer.ethernet(TYPE.ipv4, layer.ipv4(PROTOCOL.udp, datagram, { totalLength: 0 }))
}

function pppFrame(random: SeededRandom): Buffer {
  const isMpls = random.next() < 0.4
  const packet = isMpls ? layer.mpls([random.integer(16, 99)], ipv4Packet(random)) : ipv4Packet(random)
  return Buffer.concat([layer.hex('ff03', isMpls ? '0281' : '0021'), packet])
}

/** Linux's header where it hides the link layer: sent, received, broadcast. */
function cookedFrame(random: SeededRandom): Buffer {
  const [type, payload] = typed(random)
  const direction = layer.bytesOf(random.pick([0, 1, 4]), 2)
  return Buffer.concat([
    direction,
    layer.hex('00010006', '0200000000010000'),
    layer.bytesOf(type, 2),
    payload,
  ])
}

function cooked2Frame(random: SeededRandom): Buffer {
  const [type, payload] = typed(random)
  const fixed = [
    layer.bytesOf(type, 2),
    layer.hex('0000', '00000002', '0001'),
    Buffer.from([random.pick([0, 1, 4]), 6]),
  ]
  return Buffer.concat([...fixed, layer.hex('0200000000010000'), payload])
}
