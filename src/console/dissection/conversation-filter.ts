/** Display filters for conversations, also by their Community ID. */
import { communityId } from '../inside/community-id.ts'
import { flowOf, type PacketFlow } from '../inside/packet-summary.ts'
import type { Packet } from '../inside/pcap-packets.ts'

const WITH_PORTS: Readonly<Record<number, string>> = { 6: 'tcp', 17: 'udp', 132: 'sctp' }

/** The packets of both directions, as Wireshark's own conversation filter. */
export function conversationFilter({ source, destination, protocol, ports }: PacketFlow): string {
  const ends = `${addressFilter(source)} and ${addressFilter(destination)}`
  const name = WITH_PORTS[protocol]
  if (ports === undefined || name === undefined) return ends
  return `${ends} and ${name}.port eq ${ports.source} and ${name}.port eq ${ports.destination}`
}

export function addressFilter(address: string): string {
  return `${address.includes(':') ? 'ipv6' : 'ip'}.addr eq ${address}`
}

/** Version, colon, and the 20 bytes of a hash as Base64. */
export function isCommunityId(text: string): boolean {
  return /^1:[\w+/]{27}=$/.test(text)
}

/** Undefined if none of the packets is of this conversation. */
export function filterOfCommunityId(id: string, packets: readonly Packet[]): string | undefined {
  for (const packet of packets) {
    const flow = flowOf(packet)
    if (flow !== undefined && communityId(flow) === id) return conversationFilter(flow)
  }
  return undefined
}
