/** Headers of packets, from the inside out: each function puts its own before its payload. */

export const TYPE = {
  ipv4: 0x0800,
  arp: 0x0806,
  erspan3: 0x22eb,
  bridged: 0x6558,
  vlan: 0x8100,
  ipv6: 0x86dd,
  mpls: 0x8847,
  erspan: 0x88be,
  interfaceTag: 0x8926,
  serviceVlan: 0x88a8,
  oldVlan: 0x9100,
  switchTime: 0xd28b,
} as const

export const PROTOCOL = { icmp: 1, ipInIp: 4, tcp: 6, udp: 17, ipv6InIp: 41, gre: 47, icmp6: 58 } as const

export function hex(...digits: readonly string[]): Buffer {
  return Buffer.from(digits.join('').replaceAll(/\s/g, ''), 'hex')
}

/** A number in network byte order. */
export function bytesOf(value: number | bigint, count: number): Buffer {
  return hex(
    BigInt.asUintN(8 * count, BigInt(value))
      .toString(16)
      .padStart(2 * count, '0'),
  )
}

/** Sending and receiving station: 1 to 255, or "all". */
export interface Ends {
  readonly from: number
  readonly to: number | 'all'
}

const ONE_TO_TWO: Ends = { from: 1, to: 2 }

export function ethernet(type: number, payload: Buffer, { from, to }: Ends = ONE_TO_TWO): Buffer {
  const destination = to === 'all' ? hex('ffffffffffff') : hex('0200000000', byte(to))
  return Buffer.concat([destination, hex('0200000000', byte(from)), bytesOf(type, 2), payload])
}

/** The content after the type of a tag. */
export function tagged(vlan: number, type: number, payload: Buffer): Buffer {
  return Buffer.concat([bytesOf(vlan, 2), bytesOf(type, 2), payload])
}

export interface Ipv4Fields extends Partial<Ends> {
  readonly id?: number
  /** The 16 bits of flags and offset. */
  readonly fragment?: number
  /** A multiple of four. */
  readonly options?: Buffer
  readonly ttl?: number
  /** Default: the right one. */
  readonly totalLength?: number
}

/** IPv4 from 10.0.0.<from> to 10.0.1.<to>. */
export function ipv4(protocol: number, payload: Buffer, fields: Ipv4Fields = {}): Buffer {
  const { from = 1, to = 2, id = 0, fragment = 0, options = Buffer.alloc(0), ttl = 64 } = fields
  const headerBytes = 20 + options.length
  const destination = to === 'all' ? hex('ffffffff') : hex('0a0001', byte(to))
  const header = Buffer.concat([
    Buffer.from([0x40 + headerBytes / 4, 0]),
    bytesOf(fields.totalLength ?? headerBytes + payload.length, 2),
    bytesOf(id, 2),
    bytesOf(fragment, 2),
    Buffer.from([ttl, protocol, 0, 0]),
    hex('0a0000', byte(from)),
    destination,
    options,
  ])
  header.writeUInt16BE(checksumOf(header), 10)
  return Buffer.concat([header, payload])
}

/** IPv6 from 2001:db8::<from> to 2001:db8:1::<to>. */
export function ipv6(nextHeader: number, payload: Buffer, { from, to }: Ends = ONE_TO_TWO): Buffer {
  const source = hex('20010db8', '00'.repeat(11), byte(from))
  const destination =
    to === 'all' ? hex('ff02', '00'.repeat(13), '01') : hex('20010db80001', '00'.repeat(9), byte(to))
  const fixed = Buffer.concat([hex('60000000'), bytesOf(payload.length, 2), Buffer.from([nextHeader, 64])])
  return Buffer.concat([fixed, source, destination, payload])
}

export function udp(
  source: number,
  destination: number,
  payload: Buffer,
  length = 8 + payload.length,
): Buffer {
  return Buffer.concat([
    bytesOf(source, 2),
    bytesOf(destination, 2),
    bytesOf(length, 2),
    hex('0000'),
    payload,
  ])
}

export interface TcpFields {
  readonly flags?: number
  readonly sequence?: number
  /** A multiple of four. */
  readonly options?: Buffer
}

export function tcp(source: number, destination: number, payload: Buffer, fields: TcpFields = {}): Buffer {
  const { flags = 0x18, sequence = 1, options = Buffer.alloc(0) } = fields
  return Buffer.concat([
    bytesOf(source, 2),
    bytesOf(destination, 2),
    bytesOf(sequence, 4),
    bytesOf(1, 4),
    Buffer.from([(5 + options.length / 4) << 4, flags]),
    hex('ffff00000000'),
    options,
    payload,
  ])
}

/** An echo request or reply. */
export function icmpEcho(isReply: boolean, sequence: number, payload: Buffer): Buffer {
  return Buffer.concat([hex(isReply ? '0000' : '0800', '0000', '0007'), bytesOf(sequence, 2), payload])
}

export function arp(isReply: boolean, { from, to }: { readonly from: number; readonly to: number }): Buffer {
  const [sender, target] = [from, to].map((id) => hex('0200000000', byte(id), '0a0000', byte(id)))
  return Buffer.concat([hex('000108000604'), bytesOf(isReply ? 2 : 1, 2), sender ?? hex(), target ?? hex()])
}

/** A DNS query for an address, or its answer. */
export function dns(id: number, name: string, answer?: Buffer): Buffer {
  const labels = name
    .split('.')
    .map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]))
  const question = Buffer.concat([...labels, hex('00', '0001', '0001')])
  const counts = hex('0001', answer === undefined ? '0000' : '0001', '0000', '0000')
  const head = Buffer.concat([bytesOf(id, 2), hex(answer === undefined ? '0100' : '8180'), counts])
  if (answer === undefined) return Buffer.concat([head, question])
  return Buffer.concat([head, question, hex('c00c', '0001', '0001', '0000003c', '0004'), answer])
}

export interface GreFields {
  readonly hasChecksum?: boolean
  readonly key?: number
  readonly sequence?: number
}

export function gre(
  type: number,
  payload: Buffer,
  { hasChecksum = false, key, sequence }: GreFields = {},
): Buffer {
  const flags =
    (hasChecksum ? 0x8000 : 0) | (key === undefined ? 0 : 0x2000) | (sequence === undefined ? 0 : 0x1000)
  return Buffer.concat([
    bytesOf(flags, 2),
    bytesOf(type, 2),
    hex(hasChecksum ? '00000000' : ''),
    key === undefined ? hex() : bytesOf(key, 4),
    sequence === undefined ? hex() : bytesOf(sequence, 4),
    payload,
  ])
}

export function vxlan(network: number, frame: Buffer): Buffer {
  return Buffer.concat([hex('08000000'), bytesOf(network, 3), hex('00'), frame])
}

/** `options` is a multiple of four bytes. */
export function geneve(type: number, payload: Buffer, options: Buffer = Buffer.alloc(0)): Buffer {
  const fixed = Buffer.concat([Buffer.from([options.length / 4, 0]), bytesOf(type, 2), hex('00000700')])
  return Buffer.concat([fixed, options, payload])
}

export function mpls(labels: readonly number[], payload: Buffer): Buffer {
  const stack = labels.map((label, index) =>
    bytesOf(label * 4096 + (index === labels.length - 1 ? 256 : 0) + 64, 4),
  )
  return Buffer.concat([...stack, payload])
}

/** A user packet, with or without an extension header. */
export function gtpUser(tunnel: number, packet: Buffer, extension: Buffer = Buffer.alloc(0)): Buffer {
  const rest = extension.length === 0 ? packet : Buffer.concat([hex('000000', '85'), extension, packet])
  const flags = extension.length === 0 ? 0x30 : 0x34
  return Buffer.concat([Buffer.from([flags, 0xff]), bytesOf(rest.length, 2), bytesOf(tunnel, 4), rest])
}

/** The type II header, without the GRE header. */
export function erspan2(session: number, frame: Buffer): Buffer {
  return Buffer.concat([bytesOf(0x1064_0000 + session, 4), hex('00000005'), frame])
}

/** The type III header with a counter of this granularity. */
export function erspan3(session: number, granularity: number, counter: bigint, frame: Buffer): Buffer {
  const head = [
    bytesOf(0x2064_0000 + session, 4),
    bytesOf(counter, 4),
    hex('0000'),
    bytesOf(granularity * 2, 2),
  ]
  return Buffer.concat([...head, frame])
}

function byte(value: number): string {
  return value.toString(16).padStart(2, '0')
}

function checksumOf(header: Buffer): number {
  let sum = 0
  for (let at = 0; at < header.length; at += 2) sum += header.readUInt16BE(at)
  sum = (sum & 0xffff) + (sum >>> 16)
  return ~(sum + (sum >>> 16)) & 0xffff
}
