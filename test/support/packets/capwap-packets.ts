/**
 * Packets at the CAPWAP data port: Ethernet and IEEE 802.11 frames of stations, and similar packets that are
 * encrypted, a fragment, a keep-alive, or of another radio. Only unambiguous ones: IEEE 802.11 data always has a
 * direction.
 */
import type { SeededRandom } from '../seeded-random.ts'

/** Order of the two frame control bytes of IEEE 802.11. */
export type FrameControlOrder = 'standard' | 'swapped'

const SNAP = 'aaaa03000000'
const DATA_KINDS = [0x08, 0x08, 0x08, 0x18, 0x88, 0x88, 0x88, 0xa8]
/** Data frames without data, management frames, control frames. */
const OTHER_KINDS = [0x48, 0xc8, 0x00, 0x40, 0x80, 0xb4, 0xd4]

function hex(...texts: readonly string[]): Buffer {
  return Buffer.from(texts.join(''), 'hex')
}

function be16(value: number): string {
  return value.toString(16).padStart(4, '0')
}

/** A whole captured packet. */
export function makeCapwapPacket(random: SeededRandom, order: FrameControlOrder): Buffer {
  const isWlan = random.next() < 0.7
  const frame = isWlan ? wlanFrame(random, order) : ethernetFrame(random)
  return inUdp(random, Buffer.concat([capwapHeader(random, isWlan), frame]))
}

/** EtherType and packet, each with addresses that only occur inside. */
function innerPacket(random: SeededRandom): Buffer {
  const tcp = hex('9c400050', '00'.repeat(8), '5002', '00'.repeat(6))
  const dns = hex('9c4000350008', '0000')
  const echo = hex('0800', '00'.repeat(6))
  return random.pick([
    Buffer.concat([hex('0800'), ipv4('0a090001', 6, tcp)]),
    Buffer.concat([hex('0800'), ipv4('0a090002', 17, dns)]),
    Buffer.concat([hex('0800'), ipv4('0a090001', 1, echo)]),
    Buffer.concat([hex('86dd'), ipv6('09', 6, tcp)]),
    hex('0806', '0001080006040001', '020000000001', '0a090001', '00'.repeat(6), '0a090002'),
    hex('888e', '01010000'),
  ])
}

function ipv4(source: string, protocol: number, payload: Buffer): Buffer {
  const header = hex('4500', be16(20 + payload.length), '0000000040', protocol.toString(16).padStart(2, '0'))
  return Buffer.concat([header, hex('0000', source, '0a0a0a0a'), payload])
}

function ipv6(lastByte: string, nextHeader: number, payload: Buffer): Buffer {
  const header = hex('60000000', be16(payload.length), nextHeader.toString(16).padStart(2, '0'), '40')
  const prefix = `20010db8${'00'.repeat(11)}`
  return Buffer.concat([header, hex(prefix, lastByte, prefix, 'fe'), payload])
}

function ethernetFrame(random: SeededRandom): Buffer {
  const inner = innerPacket(random)
  const tag = random.next() < 0.3 ? hex('81000064') : hex('')
  const addresses = hex('020000000901020000000902')
  if (random.next() < 0.8) return Buffer.concat([addresses, tag, inner])
  return Buffer.concat([addresses, tag, hex(be16(inner.length + 6), SNAP), inner])
}

function wlanFrame(random: SeededRandom, order: FrameControlOrder): Buffer {
  const isData = random.next() < 0.85
  const kind = random.pick(isData ? DATA_KINDS : OTHER_KINDS)
  const direction = (kind & 0x0f) === 0x08 ? random.integer(1, 3) : 0
  const isProtected = random.next() < 0.1
  // More fragments, retry, power management, more data; at the top: a control field follows.
  const flags = (random.integer(0, 255) & 0xbc) | direction | (isProtected ? 0x40 : 0)
  const hasQos = (kind & 0x8f) === 0x88
  const isLaterFragment = random.next() < 0.1
  return Buffer.concat([
    Buffer.from(order === 'standard' ? [kind, flags] : [flags, kind]),
    hex('0000', '020000000801', '020000000802', '020000000803'),
    sequenceControl(random, order, isLaterFragment),
    hex(direction === 3 ? '020000000804' : ''),
    hex(hasQos ? '0500' : '', hasQos && flags >= 0x80 ? '00000000' : ''),
    isLaterFragment ? Buffer.alloc(60, 0x55) : Buffer.concat([hex(SNAP), innerPacket(random)]),
  ])
}

/**
 * Senders that swap frame control also swap this. tshark does not expect that: its reading of the sequence number must
 * not look like that of a later fragment.
 */
function sequenceControl(random: SeededRandom, order: FrameControlOrder, isLaterFragment: boolean): Buffer {
  const fragment = isLaterFragment ? random.integer(1, 15) : 0
  const sequence = random.integer(0, 15) * 256 + random.integer(0, 15)
  const control = (sequence << 4) | fragment
  const bytes = Buffer.alloc(2)
  if (order === 'standard') bytes.writeUInt16LE(control)
  else bytes.writeUInt16BE(control)
  return bytes
}

function capwapHeader(random: SeededRandom, isWlan: boolean): Buffer {
  if (random.next() < 0.05) return hex('01000000')
  const hasRadio = random.next() < 0.3
  const hasWireless = random.next() < 0.5
  const isFragment = random.next() < 0.2
  const isKeepAlive = random.next() < 0.05
  const unusedWords = random.next() < 0.05 ? 25 : 0
  const words = 2 + (hasRadio ? 2 : 0) + (hasWireless ? 2 : 0) + unusedWords
  const binding = isWlan && random.next() < 0.1 ? random.pick([0, 2, 3]) : 1
  const flags =
    (isFragment ? 0x80 : 0) |
    (random.next() < 0.5 ? 0x40 : 0) |
    (hasWireless ? 0x20 : 0) |
    (hasRadio ? 0x10 : 0) |
    (isKeepAlive ? 0x08 : 0)
  // The offset only matters in a fragment.
  const offset = random.next() < 0.5 ? random.integer(1, 0x1fff) : 0
  return Buffer.concat([
    Buffer.from([0, words << 3, (binding << 1) | (isWlan ? 1 : 0), flags]),
    hex(be16(random.integer(0, 0xffff)), be16(offset << 3)),
    hex(hasRadio ? '0602000000070100' : '', hasWireless ? '04c8200258000000' : ''),
    Buffer.alloc(4 * unusedWords),
  ])
}

/** Over IPv4, IPv6, or UDP-Lite over IPv6; in either direction; rarely at the control port. */
function inUdp(random: SeededRandom, payload: Buffer): Buffer {
  const [source, destination] = random.pick([
    [40000, 5247],
    [40000, 5247],
    [5247, 40000],
    [5247, 5247],
    [40000, 5246],
  ] as const)
  const transport = random.pick(['ipv4', 'ipv4', 'ipv6', 'lite'] as const)
  const length = transport === 'lite' ? 8 : 8 + payload.length
  const udp = Buffer.concat([hex(be16(source), be16(destination), be16(length), '0000'), payload])
  const addresses = hex('020000000101020000000102', random.next() < 0.3 ? '81000065' : '')
  if (transport === 'ipv4') return Buffer.concat([addresses, hex('0800'), ipv4('0a010001', 17, udp)])
  return Buffer.concat([addresses, hex('86dd'), ipv6('01', transport === 'ipv6' ? 17 : 136, udp)])
}
