/**
 * Source, destination and protocol of a packet: enough to see whether these are the right ones. Wireshark does the
 * rest.
 */
import { TEXTS } from '../texts.ts'
import type { Packet } from './pcap-packets.ts'

export interface PacketSummary {
  readonly source: string
  readonly destination: string
  readonly protocol: string
}

const ETHERNET = 1
const RAW_IP = 101
const ETHERNET_BYTES = 14
const VLAN_TYPES: ReadonlySet<number> = new Set([0x8100, 0x88a8, 0x9100])
const ETHER_TYPES: Readonly<Record<number, string>> = {
  2054: 'ARP',
  34887: 'MPLS',
  34888: 'MPLS',
  35020: 'LLDP',
  35063: 'PTP',
  34825: 'LACP',
}
const PROTOCOLS: Readonly<Record<number, string>> = {
  1: 'ICMP',
  2: 'IGMP',
  6: 'TCP',
  17: 'UDP',
  47: 'GRE',
  50: 'ESP',
  58: 'ICMPv6',
  89: 'OSPF',
  103: 'PIM',
  112: 'VRRP',
  132: 'SCTP',
}
const PORTED: ReadonlySet<number> = new Set([6, 17, 132])
const HOP_BY_HOP = new Set([0, 43, 60])

/** The ends of a packet, according to its outermost IP header. */
export interface PacketFlow {
  readonly source: string
  readonly destination: string
  /** Number of the IP protocol. */
  readonly protocol: number
  /** Undefined without ports: another protocol, or a later fragment. */
  readonly ports: { readonly source: number; readonly destination: number } | undefined
}

/** Undefined if the packet has no IP header that the page can read. */
export function flowOf(packet: Packet): PacketFlow | undefined {
  const view = viewOf(packet)
  try {
    if (packet.linkType === RAW_IP) return ipFlow(view, 0)
    if (packet.linkType !== ETHERNET) return undefined
    const { type, at } = etherType(view)
    return isIp(type) ? ipFlow(view, at) : undefined
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

export function summaryOf(packet: Packet): PacketSummary {
  const view = viewOf(packet)
  try {
    if (packet.linkType === RAW_IP) return ipSummary(view, 0)
    if (packet.linkType !== ETHERNET) return unknown(`${TEXTS.inside.linkType} ${packet.linkType}`)
    return ethernetSummary(view)
  } catch (error) {
    // Slice, or the wire, has cut the packet inside a header.
    if (error instanceof RangeError) return unknown(TEXTS.inside.cutShort)
    throw error
  }
}

function viewOf({ bytes }: Packet): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Behind VLAN tags, with the offset of what it is the type of. */
function etherType(view: DataView): { readonly type: number; readonly at: number } {
  let at = ETHERNET_BYTES
  let type = view.getUint16(at - 2)
  while (VLAN_TYPES.has(type)) {
    at += 4
    type = view.getUint16(at - 2)
  }
  return { type, at }
}

function isIp(type: number): boolean {
  return type === 0x0800 || type === 0x86dd
}

function ethernetSummary(view: DataView): PacketSummary {
  const { type, at } = etherType(view)
  if (isIp(type)) return ipSummary(view, at)
  const protocol = type < 0x600 ? 'LLC' : (ETHER_TYPES[type] ?? `0x${type.toString(16).padStart(4, '0')}`)
  return { source: mac(view, 6), destination: mac(view, 0), protocol }
}

function ipSummary(view: DataView, at: number): PacketSummary {
  const flow = ipFlow(view, at)
  if (flow === undefined) return unknown('IP')
  const { source, destination, protocol: number, ports } = flow
  const protocol = protocolName(number)
  if (ports === undefined) return { source, destination, protocol }
  const end = (address: string, port: number) => `${address.includes(':') ? `[${address}]` : address}:${port}`
  return { source: end(source, ports.source), destination: end(destination, ports.destination), protocol }
}

export function protocolName(number: number): string {
  return PROTOCOLS[number] ?? `IP ${number}`
}

function ipFlow(view: DataView, at: number): PacketFlow | undefined {
  const version = view.getUint8(at) >> 4
  if (version === 4) {
    const isFirst = (view.getUint16(at + 6) & 0x1fff) === 0
    const headerBytes = (view.getUint8(at) & 15) * 4
    const protocol = view.getUint8(at + 9)
    return {
      source: ipv4(view, at + 12),
      destination: ipv4(view, at + 16),
      protocol,
      ports: isFirst ? portsOf(view, at + headerBytes, protocol) : undefined,
    }
  }
  if (version !== 6) return undefined
  let protocol = view.getUint8(at + 6)
  let next = at + 40
  while (HOP_BY_HOP.has(protocol)) {
    protocol = view.getUint8(next)
    next += (view.getUint8(next + 1) + 1) * 8
  }
  return {
    source: ipv6(view, at + 8),
    destination: ipv6(view, at + 24),
    protocol,
    ports: portsOf(view, next, protocol),
  }
}

/** Of the transport header at this offset. */
function portsOf(view: DataView, at: number, protocol: number): PacketFlow['ports'] {
  if (!PORTED.has(protocol) || at + 4 > view.byteLength) return undefined
  return { source: view.getUint16(at), destination: view.getUint16(at + 2) }
}

function unknown(protocol: string): PacketSummary {
  return { source: '', destination: '', protocol }
}

function mac(view: DataView, at: number): string {
  return Array.from({ length: 6 }, (_, index) =>
    view
      .getUint8(at + index)
      .toString(16)
      .padStart(2, '0'),
  ).join(':')
}

function ipv4(view: DataView, at: number): string {
  return Array.from({ length: 4 }, (_, index) => view.getUint8(at + index)).join('.')
}

/** The longest run of zeros is written "::". */
function ipv6(view: DataView, at: number): string {
  const text = Array.from({ length: 8 }, (_, index) => view.getUint16(at + index * 2).toString(16)).join(':')
  const runs = [...text.matchAll(/\b0(?::0)+\b/g)].toSorted((a, b) => b[0].length - a[0].length)
  const [longest] = runs
  if (longest === undefined) return text
  const [before, behind] = [text.slice(0, longest.index), text.slice(longest.index + longest[0].length)]
  return `${before.replace(/:$/, '')}::${behind.replace(/^:/, '')}`
}
