/** From a packet to other packets: its conversation, its hosts, and where these were seen. Each is a link. */
import { formatPageState, type PageState, usePageState } from '../base/page-url.ts'
import { Value } from '../parts/copied.tsx'
import { TEXTS } from '../texts.ts'
import { SEEN_SEARCH } from '../timeline/sighting-search.tsx'
import { communityId } from './community-id.ts'
import { flowOf, type PacketFlow } from './packet-summary.ts'
import type { Packet } from './pcap-packets.ts'

export function PivotLinks({ packet }: { readonly packet: Packet }) {
  const { pivots: texts } = TEXTS
  const { values } = usePageState()
  const flow = flowOf(packet)
  if (flow === undefined) return null
  const id = communityId(flow)
  const hosts = [...new Set([flow.source, flow.destination])]
  return (
    <ul class="controls pivots" aria-label={texts.title}>
      <li>
        <a href={conversationLink(flow, packet.ns, values)}>{texts.conversation}</a>
      </li>
      {hosts.map((host) => (
        <li key={host}>
          <span class="mono">{host}</span> <a href={hostLink(host, packet.ns, values)}>{texts.host}</a>{' '}
          <a href={seenLink(host)}>{texts.seen}</a>
        </li>
      ))}
      {id === undefined ? null : (
        <li>
          {texts.communityId} <Value text={id} hasSign />
        </li>
      )}
    </ul>
  )
}

/** Its packets around this time, of the devices that are selected now. */
export function conversationLink(
  { source, destination, protocol, ports }: PacketFlow,
  ns: bigint,
  values: PageState['values'],
): string {
  const ends = ports === undefined ? {} : { sport: String(ports.source), dport: String(ports.destination) }
  const flow = { src: source, dst: destination, proto: String(protocol), ...ends }
  return formatPageState({ view: 'pivot', values: { ...flow, at: String(ns), ...selectedDevices(values) } })
}

/** All packets of an address around this time, of the devices that are selected now. */
export function hostLink(address: string, ns: bigint, values: PageState['values']): string {
  return formatPageState({
    view: 'pivot',
    values: { src: address, at: String(ns), ...selectedDevices(values) },
  })
}

/** The search for an address in everything that the devices have. */
export function seenLink(address: string): string {
  return formatPageState({ view: 'timeline', values: { [SEEN_SEARCH]: address } })
}

function selectedDevices({ Device }: PageState['values']): PageState['values'] {
  return Device === undefined ? {} : { Device }
}
