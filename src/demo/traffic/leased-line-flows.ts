import type { FlowPacket, FlowPath } from './flow-packet.ts'
import { httpFlow } from './flows/http-flow.ts'
import { tlsFlow } from './flows/tls-flow.ts'
import { seenElsewhere } from './packet-bytes.ts'
import type { Random } from './random.ts'
import { appServerMac, routerMac, SITES, SiteNetwork, type SiteNumber } from './site-network.ts'

/** Time to live of packets that have come over the line. */
export const ARRIVED_TTL = 61
export const SENT_TTL = 64

/**
 * The flows between two sites, seen at both: the same packets apart from MAC addresses and time to
 * live, at the server's site some milliseconds later (and its answers earlier). Both sites must make
 * them from random numbers of the same seed.
 */
export class LeasedLineFlows {
  readonly #random: Random
  readonly #networks: readonly { readonly site: SiteNumber; readonly network: SiteNetwork }[]
  readonly #seenAt: SiteNumber

  /** `sites` in ascending order; `seenAt` is one of them. */
  constructor(sites: readonly [SiteNumber, SiteNumber], seenAt: SiteNumber, random: Random) {
    this.#random = random
    this.#networks = sites.map((site) => ({ site, network: new SiteNetwork(site, random) }))
    this.#seenAt = seenAt
  }

  /** A flow whose first packet leaves the client's site when the flow begins. */
  makeFlow(): FlowPacket[] {
    const random = this.#random
    const clientAt = random.below(2)
    const client = this.#networks[clientAt]
    const server = this.#networks[1 - clientAt]
    if (client === undefined || server === undefined) return []
    const useTls = random.chance(0.6)
    const path = client.network.toSite(server.site, useTls ? 443 : 80)
    const host = `orders.${SITES[server.site]}.example`
    const packets = useTls ? tlsFlow(path, random, host) : httpFlow(path, random, host)
    if (client.site === this.#seenAt) return packets
    return asSeenByServer(packets, path, { site: server.site, mac: appServerMac(server.site) })
  }
}

/** The packets of a flow over the line as the server's site sees them; `mac` is that of the server there. */
export function asSeenByServer(
  packets: readonly FlowPacket[],
  path: FlowPath,
  { site, mac }: { readonly site: SiteNumber; readonly mac: Buffer },
): FlowPacket[] {
  const delayNs = (path.roundTripNs * 9n) / 20n
  const inbound = { fromMac: routerMac(site), toMac: mac, ttl: ARRIVED_TTL }
  const outbound = { fromMac: mac, toMac: routerMac(site), ttl: SENT_TTL }
  return packets
    .map(({ offsetNs, fromClient, bytes }) => ({
      offsetNs: fromClient ? offsetNs + delayNs : offsetNs - delayNs,
      fromClient,
      bytes: seenElsewhere(bytes, fromClient ? inbound : outbound),
    }))
    .sort((a, b) => Number(a.offsetNs - b.offsetNs))
}
