/** The addresses of a packet by the rules of FilterAddresses, read in the simplest way. */
import { SocketAddress } from 'node:net'

const VLAN_TYPES: ReadonlySet<number> = new Set([0x8100, 0x88a8, 0x9100, 0x9200])

/** Source and destination of the outermost IP header, or of ARP, after at most two VLAN tags; in canonical text. */
export function packetAddresses(linkType: number, packet: Buffer): readonly string[] {
  if (linkType === 101) return ofPayload((packet[0] ?? 0) >> 4 === 6 ? 0x86dd : 0x0800, packet)
  const [typeAt, payloadAt] = { 1: [12, 14], 113: [14, 16], 276: [0, 20] }[linkType] ?? []
  if (typeAt === undefined || payloadAt === undefined || packet.length < payloadAt) return []
  let type = packet.readUInt16BE(typeAt)
  let payload = packet.subarray(payloadAt)
  for (let tags = 0; tags < 2 && VLAN_TYPES.has(type) && payload.length >= 4; tags++) {
    type = payload.readUInt16BE(2)
    payload = payload.subarray(4)
  }
  return ofPayload(type, payload)
}

function ofPayload(type: number, payload: Buffer): readonly string[] {
  const [bytes, ...places] =
    { 2048: [4, 12, 16], 2054: [4, 14, 24], 32821: [4, 14, 24], 34525: [16, 8, 24] }[type] ?? []
  if (bytes === undefined) return []
  return places
    .filter((at) => at + bytes <= payload.length)
    .map((at) => addressText(payload.subarray(at, at + bytes)))
}

function addressText(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.')
  const groups = bytes.toString('hex').match(/.{4}/g) ?? []
  return new SocketAddress({ family: 'ipv6', address: groups.join(':') }).address
}
