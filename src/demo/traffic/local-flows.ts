import type { FlowPacket } from './flow-packet.ts'
import { dnsFlow } from './flows/dns-flow.ts'
import { httpFlow } from './flows/http-flow.ts'
import { MarketDataFeed } from './flows/market-data-flow.ts'
import { ntpFlow } from './flows/ntp-flow.ts'
import { pingFlow } from './flows/ping-flow.ts'
import { syslogFlow } from './flows/syslog-flow.ts'
import { tlsFlow } from './flows/tls-flow.ts'
import type { Random } from './random.ts'
import { OUTSIDE_SERVERS, SITES, SiteNetwork, type SiteNumber } from './site-network.ts'

const HTTP_PORT = 80
const HTTPS_PORT = 443
const FEEDS = 4
/** Popular names are looked up far more often than others. */
const POPULARITY = 2

/** Flow kinds with their number in a hundred flows. */
const MIX = ['dns', 'tls', 'http', 'market', 'syslog', 'ntp', 'ping'] as const
const SHARES = { dns: 40, tls: 24, http: 16, market: 8, syslog: 7, ntp: 3, ping: 2 } as const

/** The flows that only one site sees: its desks, its resolver, its feeds. */
export class LocalFlows {
  readonly #random: Random
  readonly #network: SiteNetwork
  readonly #siteName: string
  readonly #feeds: readonly MarketDataFeed[]

  constructor(site: SiteNumber, random: Random) {
    this.#random = random
    this.#network = new SiteNetwork(site, random)
    this.#siteName = SITES[site]
    this.#feeds = Array.from(
      { length: FEEDS },
      (_, feed) => new MarketDataFeed(`FEED${site}${feed}`.padEnd(10)),
    )
  }

  /** Any flow that begins at this time. */
  makeFlow(startNs: bigint): FlowPacket[] {
    const random = this.#random
    const network = this.#network
    switch (this.#pickKind()) {
      case 'dns':
        return this.#dns()
      case 'tls':
        return this.#toOutside(tlsFlow, HTTPS_PORT)
      case 'http':
        return this.#toOutside(httpFlow, HTTP_PORT)
      case 'market':
        return this.#market(startNs)
      case 'syslog':
        return syslogFlow(network.toLocal(514), random, `${this.#siteName}-${random.between(1, 40)}`, startNs)
      case 'ntp':
        return ntpFlow(network.toLocal(123), random, startNs)
      case 'ping':
        return pingFlow(network.toPinged(random.pick(OUTSIDE_SERVERS)), random)
    }
  }

  #pickKind(): (typeof MIX)[number] {
    let left = this.#random.below(100)
    for (const kind of MIX) {
      left -= SHARES[kind]
      if (left < 0) return kind
    }
    return 'dns'
  }

  #dns(): FlowPacket[] {
    const random = this.#random
    const path = this.#network.toLocal(53)
    const { host, ipv4, ipv6 } = random.pick(OUTSIDE_SERVERS, POPULARITY)
    if (random.chance(0.04)) return dnsFlow(path, random, { name: `old.${host}`, address: undefined })
    return dnsFlow(path, random, { name: host, address: random.chance(0.25) ? ipv6 : ipv4 })
  }

  #toOutside(makeFlow: typeof tlsFlow, port: number): FlowPacket[] {
    const server = this.#random.pick(OUTSIDE_SERVERS, POPULARITY)
    return makeFlow(this.#network.toOutside(server, port), this.#random, server.host)
  }

  #market(startNs: bigint): FlowPacket[] {
    const group = this.#random.below(FEEDS)
    const feed = this.#feeds[group]
    return feed === undefined ? [] : feed.burst(this.#network.toMulticast(group), this.#random, startNs)
  }
}
