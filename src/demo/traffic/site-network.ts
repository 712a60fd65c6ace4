import type { FlowPath } from './flow-packet.ts'
import type { Endpoint } from './packet-bytes.ts'
import type { Random } from './random.ts'

/**
 * The three demo sites, by number: those of the devices nyc1, lon1 and sgp1. Addresses are from the blocks for private
 * use and for documentation.
 */
export const SITES = ['newyork', 'london', 'singapore'] as const
export type SiteNumber = 0 | 1 | 2

/** An outside server, reached over IPv4 or IPv6. */
export interface OutsideServer {
  readonly host: string
  readonly ipv4: Buffer
  readonly ipv6: Buffer
}

const DNS_PORT = 53
const CLIENTS_PER_SITE = 160
const FIRST_PORT = 32_768
const LAST_PORT = 60_999
const DESK_VLANS = [110, 120]
const LOCAL_ROUND_TRIP_NS = 180_000
const OUTSIDE_NAMES = ['www', 'api', 'cdn', 'mail', 'static', 'login', 'updates', 'img']
const OUTSIDE_DOMAINS = [
  'example.com',
  'example.net',
  'example.org',
  'shop.example',
  'news.example',
  'cloud.example',
]

export const OUTSIDE_SERVERS: readonly OutsideServer[] = OUTSIDE_DOMAINS.flatMap((domain, d) =>
  OUTSIDE_NAMES.map((name, n) => ({
    host: `${name}.${domain}`,
    ipv4: Buffer.from([
      ...([
        [203, 0, 113],
        [198, 51, 100],
      ][d % 2] ?? []),
      10 + d * OUTSIDE_NAMES.length + n,
    ]),
    ipv6: ipv6Address(0xff, d, 0x80 + n),
  })),
)

/**
 * Creates the two sides of flows as a capture at the site's border sees them: clients with their own MAC address and
 * time to live, everything outside behind the router. Client ports are assigned in turn, so that no two concurrent
 * flows of one file share addresses and ports.
 */
export class SiteNetwork {
  readonly #site: SiteNumber
  readonly #random: Random
  #nextPort = FIRST_PORT

  constructor(site: SiteNumber, random: Random) {
    this.#site = site
    this.#random = random
  }

  /** A path from a client (the first ones are the busiest) to an outside server. */
  toOutside(server: OutsideServer, port: number): FlowPath {
    const random = this.#random
    const client = this.#clientNumber()
    const isIpv6 = client % 8 === 5
    return {
      client: this.#client(client, isIpv6),
      server: {
        mac: routerMac(this.#site),
        ip: isIpv6 ? server.ipv6 : server.ipv4,
        port,
        ttl: 64 - (6 + ((server.ipv4[3] ?? 0) % 9)),
      },
      vlan: vlanOf(client),
      roundTripNs: BigInt(random.between(4_000_000, 35_000_000)),
    }
  }

  /** An untagged IPv4 client that pings an outside server. */
  toPinged(server: OutsideServer): FlowPath {
    return {
      client: this.#client(this.#clientNumber() & ~7, false, 0),
      server: { mac: routerMac(this.#site), ip: server.ipv4, port: 0, ttl: 56 },
      roundTripNs: BigInt(this.#random.between(4_000_000, 35_000_000)),
    }
  }

  /** From a client to a server of the same site: 53 is its resolver, 123 its clock, 514 its log collector. */
  toLocal(port: number): FlowPath {
    const client = this.#clientNumber()
    const isIpv6 = port === DNS_PORT && client % 8 === 5
    return {
      client: this.#client(client, isIpv6, port === 123 ? 123 : undefined),
      server: this.#localServer(port, isIpv6),
      vlan: vlanOf(client),
      roundTripNs: BigInt(this.#random.between(LOCAL_ROUND_TRIP_NS / 2, LOCAL_ROUND_TRIP_NS * 2)),
    }
  }

  /** The exchange's feed to multicast group number `group`. */
  toMulticast(group: number): FlowPath {
    const address = [233, 252, 0, 1 + group]
    return {
      client: {
        mac: routerMac(this.#site),
        ip: Buffer.from([192, 0, 2, 20 + group]),
        port: 21_000 + group,
        ttl: 18,
      },
      server: {
        mac: Buffer.from([0x01, 0x00, 0x5e, 252 & 0x7f, 0, 1 + group]),
        ip: Buffer.from(address),
        port: 26_400 + group,
        ttl: 1,
      },
      roundTripNs: 0n,
    }
  }

  /**
   * From a client of this site to a server of another one, over the leased line. No VLAN tag, so that the other site
   * sees the same bytes apart from MAC addresses and time to live.
   */
  toSite(other: SiteNumber, port: number): FlowPath {
    const random = this.#random
    return {
      client: this.#client(this.#clientNumber() & ~7, false),
      server: { mac: routerMac(this.#site), ip: appServerIp(other), port, ttl: 61 },
      roundTripNs: BigInt(random.between(9_000_000, 18_000_000)),
    }
  }

  #clientNumber(): number {
    return this.#random.lowBelow(CLIENTS_PER_SITE, 2)
  }

  #client(number: number, isIpv6: boolean, port?: number): Endpoint {
    const ip = isIpv6
      ? ipv6Address(this.#site, 1, number + 1)
      : Buffer.from([10, 20 + this.#site, 1 + (number >> 6), 10 + (number & 63)])
    return {
      mac: Buffer.from([0x02, 0x10, this.#site, 0, 0, number]),
      ip,
      port: port ?? this.#takePort(),
      ttl: 64,
    }
  }

  #localServer(port: number, isIpv6: boolean): Endpoint {
    return {
      mac: Buffer.from([0x02, 0x20, this.#site, 0, port >> 8, port & 0xff]),
      ip: isIpv6 ? ipv6Address(this.#site, 2, port) : Buffer.from([10, 20 + this.#site, 0, port % 251]),
      port,
      ttl: 64,
    }
  }

  #takePort(): number {
    const port = this.#nextPort
    this.#nextPort = port === LAST_PORT ? FIRST_PORT : port + 1
    return port
  }
}

export function routerMac(site: SiteNumber): Buffer {
  return Buffer.from([0x02, 0x01, site, 0, 0, 1])
}

export function appServerMac(site: SiteNumber): Buffer {
  return Buffer.from([0x02, 0x30, site, 0, 0, 80])
}

/** Some desks are in tagged networks. */
function vlanOf(client: number): number | undefined {
  return client % 8 === 3 ? DESK_VLANS[(client >> 3) % 2] : undefined
}

function appServerIp(site: SiteNumber): Buffer {
  return Buffer.from([10, 20 + site, 9, 80])
}

/** An address in 2001:db8::/32, the block for documentation. */
function ipv6Address(network: number, subnet: number, host: number): Buffer {
  const address = Buffer.alloc(16)
  address.writeUInt32BE(0x20010db8)
  address.writeUInt16BE(network, 4)
  address.writeUInt16BE(subnet, 6)
  address.writeUInt32BE(host, 12)
  return address
}
