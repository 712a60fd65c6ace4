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

export function summaryOf({ bytes, linkType }: Packet): PacketSummary {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  try {
    if (linkType === RAW_IP) return ipSummary(view, 0) ?? unknown('IP')
    if (linkType !== ETHERNET) return unknown(`${TEXTS.inside.linkType} ${linkType}`)
    return ethernetSummary(view)
  } catch (error) {
    // Slice, or the wire, has cut the packet inside a header.
    if (error instanceof RangeError) return unknown(TEXTS.inside.cutShort)
    throw error
  }
}

function ethernetSummary(view: DataView): PacketSummary {
  let at = ETHERNET_BYTES
  let type = view.getUint16(at - 2)
  while (VLAN_TYPES.has(type)) {
    at += 4
    type = view.getUint16(at - 2)
  }
  if (type === 0x0800 || type === 0x86dd) return ipSummary(view, at) ?? unknown('IP')
  const protocol = type < 0x600 ? 'LLC' : (ETHER_TYPES[type] ?? `0x${type.toString(16).padStart(4, '0')}`)
  return { source: mac(view, 6), destination: mac(view, 0), protocol }
}

function ipSummary(view: DataView, at: number): PacketSummary | undefined {
  const version = view.getUint8(at) >> 4
  if (version === 4) {
    const isFirst = (view.getUint16(at + 6) & 0x1fff) === 0
    const headerBytes = (view.getUint8(at) & 15) * 4
    const ends = { source: ipv4(view, at + 12), destination: ipv4(view, at + 16) }
    return withPorts(view, {
      ...ends,
      number: view.getUint8(at + 9),
      at: isFirst ? at + headerBytes : undefined,
      isV6: false,
    })
  }
  if (version !== 6) return undefined
  let next = view.getUint8(at + 6)
  let behind = at + 40
  while (HOP_BY_HOP.has(next)) {
    next = view.getUint8(behind)
    behind += (view.getUint8(behind + 1) + 1) * 8
  }
  const ends = { source: ipv6(view, at + 8), destination: ipv6(view, at + 24) }
  return withPorts(view, { ...ends, number: next, at: behind, isV6: true })
}

interface Ends {
  readonly source: string
  readonly destination: string
  readonly number: number
  /** Offset of the transport header; undefined in later fragments. */
  readonly at: number | undefined
  readonly isV6: boolean
}

function withPorts(view: DataView, { source, destination, number, at, isV6 }: Ends): PacketSummary {
  const protocol = PROTOCOLS[number] ?? `IP ${number}`
  if (!PORTED.has(number) || at === undefined || at + 4 > view.byteLength)
    return { source, destination, protocol }
  const named = (address: string) => (isV6 ? `[${address}]` : address)
  return {
    source: `${named(source)}:${view.getUint16(at)}`,
    destination: `${named(destination)}:${view.getUint16(at + 2)}`,
    protocol,
  }
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
