/**
 * Complete Ethernet frames with IPv4 or IPv6 and TCP, UDP or ICMP, with correct lengths and checksums. Frames are
 * padded to 60 bytes, as a capture card sees them.
 */
import { InternetChecksum } from './internet-checksum.ts'

/** One side of a conversation, as the capture point sees it. */
export interface Endpoint {
  /** 6 bytes. */
  readonly mac: Buffer
  /** 4 bytes (IPv4) or 16 bytes (IPv6); the same for both sides. */
  readonly ip: Buffer
  readonly port: number
  /** Time to live of this side's packets at the capture point. */
  readonly ttl: number
}

/** Source and destination of a packet. */
export interface Direction {
  readonly from: Endpoint
  readonly to: Endpoint
  /** 802.1Q tag of the link, if it has one. */
  readonly vlan?: number | undefined
  /** IPv4 identification. */
  readonly identification: number
}

export interface TcpSegment {
  readonly sequence: number
  readonly acknowledgment: number
  /** The flag byte: FIN 1, SYN 2, RST 4, PSH 8, ACK 16. */
  readonly flags: number
  readonly window: number
  /** A multiple of 4 bytes. */
  readonly options: Buffer
  readonly payload: Buffer
}

const ETHERNET_BYTES = 14
const VLAN_TAG_BYTES = 4
const IPV4_BYTES = 20
const IPV6_BYTES = 40
const TCP_BYTES = 20
const UDP_BYTES = 8
const LEAST_FRAME_BYTES = 60
const PROTOCOL_ICMP = 1
const PROTOCOL_TCP = 6
const PROTOCOL_UDP = 17

export function tcpPacket(direction: Direction, segment: TcpSegment): Buffer {
  const headerBytes = TCP_BYTES + segment.options.byteLength
  const { frame, start } = startFrame(direction, PROTOCOL_TCP, headerBytes + segment.payload.byteLength)
  frame.writeUInt16BE(direction.from.port, start)
  frame.writeUInt16BE(direction.to.port, start + 2)
  frame.writeUInt32BE(segment.sequence, start + 4)
  frame.writeUInt32BE(segment.acknowledgment, start + 8)
  frame[start + 12] = (headerBytes / 4) << 4
  frame[start + 13] = segment.flags
  frame.writeUInt16BE(segment.window, start + 14)
  segment.options.copy(frame, start + TCP_BYTES)
  segment.payload.copy(frame, start + headerBytes)
  const end = start + headerBytes + segment.payload.byteLength
  frame.writeUInt16BE(transportChecksum(frame, start, end, PROTOCOL_TCP, direction), start + 16)
  return frame
}

export function udpPacket(direction: Direction, payload: Buffer): Buffer {
  const udpBytes = UDP_BYTES + payload.byteLength
  const { frame, start } = startFrame(direction, PROTOCOL_UDP, udpBytes)
  frame.writeUInt16BE(direction.from.port, start)
  frame.writeUInt16BE(direction.to.port, start + 2)
  frame.writeUInt16BE(udpBytes, start + 4)
  payload.copy(frame, start + UDP_BYTES)
  // Zero would mean "no checksum" (RFC 768).
  const checksum = transportChecksum(frame, start, start + udpBytes, PROTOCOL_UDP, direction) || 0xffff
  frame.writeUInt16BE(checksum, start + 6)
  return frame
}

/** An ICMP echo request (type 8) or reply (type 0); IPv4 only. */
export function icmpEchoPacket(
  direction: Direction,
  echo: {
    readonly type: 0 | 8
    readonly identifier: number
    readonly sequence: number
    readonly payload: Buffer
  },
): Buffer {
  const icmpBytes = 8 + echo.payload.byteLength
  const { frame, start } = startFrame(direction, PROTOCOL_ICMP, icmpBytes)
  frame[start] = echo.type
  frame.writeUInt16BE(echo.identifier, start + 4)
  frame.writeUInt16BE(echo.sequence, start + 6)
  echo.payload.copy(frame, start + 8)
  frame.writeUInt16BE(new InternetChecksum().add(frame, start, start + icmpBytes).value, start + 2)
  return frame
}

/** The same packet at another capture point: a copy with different MAC addresses and time to live. */
export function seenElsewhere(
  frame: Buffer,
  view: { readonly fromMac: Buffer; readonly toMac: Buffer; readonly ttl: number },
): Buffer {
  const copy = Buffer.from(frame)
  view.toMac.copy(copy, 0)
  view.fromMac.copy(copy, 6)
  const tagged = copy.readUInt16BE(12) === 0x8100
  const ip = ETHERNET_BYTES + (tagged ? VLAN_TAG_BYTES : 0)
  if ((copy[ip] ?? 0) >> 4 === 6) {
    copy[ip + 7] = view.ttl
    return copy
  }
  copy[ip + 8] = view.ttl
  writeIpv4Checksum(copy, ip)
  return copy
}

/** Allocates the frame and writes Ethernet, VLAN and IP headers; `start` is where the transport header begins. */
function startFrame(
  direction: Direction,
  protocol: number,
  transportBytes: number,
): { frame: Buffer; start: number } {
  const { from, to, vlan } = direction
  const isIpv6 = from.ip.byteLength === 16
  const ip = ETHERNET_BYTES + (vlan === undefined ? 0 : VLAN_TAG_BYTES)
  const start = ip + (isIpv6 ? IPV6_BYTES : IPV4_BYTES)
  const frame = Buffer.alloc(Math.max(start + transportBytes, LEAST_FRAME_BYTES))
  to.mac.copy(frame, 0)
  from.mac.copy(frame, 6)
  if (vlan !== undefined) {
    frame.writeUInt16BE(0x8100, 12)
    frame.writeUInt16BE(vlan, 14)
  }
  frame.writeUInt16BE(isIpv6 ? 0x86dd : 0x0800, ip - 2)
  if (isIpv6) writeIpv6Header(frame, ip, direction, protocol, transportBytes)
  else writeIpv4Header(frame, ip, direction, protocol, transportBytes)
  return { frame, start }
}

function writeIpv4Header(
  frame: Buffer,
  ip: number,
  { from, to, identification }: Direction,
  protocol: number,
  transportBytes: number,
): void {
  frame[ip] = 0x45
  frame.writeUInt16BE(IPV4_BYTES + transportBytes, ip + 2)
  frame.writeUInt16BE(identification & 0xffff, ip + 4)
  frame.writeUInt16BE(0x4000, ip + 6)
  frame[ip + 8] = from.ttl
  frame[ip + 9] = protocol
  from.ip.copy(frame, ip + 12)
  to.ip.copy(frame, ip + 16)
  writeIpv4Checksum(frame, ip)
}

function writeIpv4Checksum(frame: Buffer, ip: number): void {
  frame.writeUInt16BE(0, ip + 10)
  frame.writeUInt16BE(new InternetChecksum().add(frame, ip, ip + IPV4_BYTES).value, ip + 10)
}

function writeIpv6Header(
  frame: Buffer,
  ip: number,
  { from, to }: Direction,
  protocol: number,
  transportBytes: number,
): void {
  frame[ip] = 0x60
  frame.writeUInt16BE(transportBytes, ip + 4)
  frame[ip + 6] = protocol
  frame[ip + 7] = from.ttl
  from.ip.copy(frame, ip + 8)
  to.ip.copy(frame, ip + 24)
}

/** Over the pseudo header and the transport bytes, whose checksum field is still zero. */
function transportChecksum(
  frame: Buffer,
  start: number,
  end: number,
  protocol: number,
  { from, to }: Direction,
): number {
  const checksum = new InternetChecksum()
    .add(from.ip)
    .add(to.ip)
    .addWord(protocol)
    .addWord(end - start)
  return checksum.add(frame, start, end).value
}
