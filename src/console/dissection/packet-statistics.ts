/** What the loaded packets are of: the largest talkers, conversations and protocols. */
import { flowOf, type PacketFlow, protocolName } from '../inside/packet-summary.ts'
import type { Packet } from '../inside/pcap-packets.ts'
import { addressFilter, conversationFilter } from './conversation-filter.ts'

export interface CountedPacket {
  readonly packet: Packet
  /** As Wireshark names it. */
  readonly protocol: string
}

export interface Count {
  readonly name: string
  readonly packets: number
  /** Their length on the wire, however much was captured. */
  readonly bytes: number
  /** Display filter that selects them; undefined for a protocol, whose name is none. */
  readonly filter: string | undefined
  /** The conversation, with the time of its first packet; undefined for other rows. */
  readonly flow: PacketFlow | undefined
  /** The address of a talker; undefined for other rows. */
  readonly address: string | undefined
  readonly firstNs: bigint
}

export interface PacketStatistics {
  readonly talkers: readonly Count[]
  readonly conversations: readonly Count[]
  readonly protocols: readonly Count[]
}

export function packetStatistics(counted: readonly CountedPacket[]): PacketStatistics {
  const [talkers, conversations, protocols] = [new Counts(), new Counts(), new Counts()]
  for (const { packet, protocol } of counted) {
    protocols.add(packet, { name: protocol, filter: undefined, flow: undefined, address: undefined })
    const flow = flowOf(packet)
    if (flow === undefined) continue
    for (const address of new Set([flow.source, flow.destination]))
      talkers.add(packet, { name: address, filter: addressFilter(address), flow: undefined, address })
    const { name, ordered } = conversationOf(flow)
    conversations.add(packet, {
      name,
      filter: conversationFilter(ordered),
      flow: ordered,
      address: undefined,
    })
  }
  return { talkers: talkers.largest, conversations: conversations.largest, protocols: protocols.largest }
}

/** Both directions have one name. */
function conversationOf(flow: PacketFlow): { readonly name: string; readonly ordered: PacketFlow } {
  const { source, destination, protocol, ports } = flow
  const end = (address: string, port: number | undefined) =>
    port === undefined ? address : `${address.includes(':') ? `[${address}]` : address}:${port}`
  const ends = [end(source, ports?.source), end(destination, ports?.destination)] as const
  const isOrdered = ends[0] <= ends[1]
  const name = `${(isOrdered ? ends : ends.toReversed()).join(' ↔ ')} ${protocolName(protocol)}`
  const turned = {
    source: destination,
    destination: source,
    protocol,
    ports: ports && { source: ports.destination, destination: ports.source },
  }
  return { name, ordered: isOrdered ? flow : turned }
}

class Counts {
  readonly #counts = new Map<string, Count>()

  add({ length, ns }: Packet, what: Omit<Count, 'packets' | 'bytes' | 'firstNs'>): void {
    const before = this.#counts.get(what.name) ?? { ...what, packets: 0, bytes: 0, firstNs: ns }
    this.#counts.set(what.name, {
      ...before,
      packets: before.packets + 1,
      bytes: before.bytes + length,
    })
  }

  /** By bytes; equal ones in the order of their first packets. */
  get largest(): readonly Count[] {
    return [...this.#counts.values()].sort((a, b) => b.bytes - a.bytes)
  }
}
