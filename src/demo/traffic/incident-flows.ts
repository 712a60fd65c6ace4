/**
 * An incident among the demo's traffic, for the questions of its tour. A computer in New York reports to a server
 * outside every 20 seconds. It scans servers in London, of which a file server answers. That server then sends it a
 * file, hidden in the names of DNS queries over the leased line.
 */
import type { FlowPacket, FlowPath } from './flow-packet.ts'
import type { Flow } from './flow-schedule.ts'
import { dnsFlow } from './flows/dns-flow.ts'
import { ARRIVED_TTL, asSeenByServer, SENT_TTL } from './leased-line-flows.ts'
import { type Endpoint, tcpPacket } from './packet-bytes.ts'
import { Random } from './random.ts'
import { routerMac, type SiteNumber } from './site-network.ts'
import { TcpConversation } from './tcp-conversation.ts'

const NEW_YORK = 0
const LONDON = 1
const SEED = 1
const NS_PER_S = 1_000_000_000n

/** No other host of the traffic has this address. */
const INFECTED_IP = Buffer.from([10, 20, 3, 77])
const INFECTED_MAC = Buffer.from([0x02, 0x10, NEW_YORK, 0, 0, 0xf0])
const FILE_SERVER = 25
const APP_SERVER = 80
const CONTROL_IP = Buffer.from([203, 0, 113, 99])
const LINE_ROUND_TRIP_NS = 12_000_000n

const SCAN_AFTER_NS = 150n * NS_PER_S
const SCAN_STEP_NS = 500_000n
const SCANNED_PORTS = [21, 22, 23, 25, 80, 110, 135, 139, 443, 445, 1433, 3306, 3389, 5900, 8080, 8443]
const SCANNED_HOSTS = 254
const SCANNER_PORT = 54_321
/** Open ports by host. A host that exists rejects all others; nothing answers for a host that does not. */
const OPEN_PORTS: ReadonlyMap<number, readonly number[]> = new Map([
  [FILE_SERVER, [445]],
  [APP_SERVER, [80, 443]],
])

const BEACON_AFTER_NS = 7n * NS_PER_S
const BEACON_INTERVAL_NS = 20n * NS_PER_S
const BEACONS = 15

const THEFT_AFTER_NS = 180n * NS_PER_S
const THEFT_INTERVAL_NS = NS_PER_S / 2n
const STOLEN_ROWS = 160
/** Bytes of the file in each of a name's two labels: as hexadecimal digits they stay below the limit of 63. */
const LABEL_BYTES = 30
const THEFT_DOMAIN = 'customers-csv.example'

const SYN = 2
const RST = 4
const ACK = 16

/** The incident's flows at a site, in order of their beginning. Singapore sees none. */
export function incidentFlows(site: SiteNumber, startNs: bigint): readonly Flow[] {
  // Both sites draw the same numbers in the same order, because they see the same packets.
  const random = new Random(SEED, 'incident')
  const flows = [...scan(site, random), ...beacons(site, random), ...theft(site, random)]
  return flows
    .filter(({ packets }) => packets.length > 0)
    .map((flow) => ({ ...flow, startNs: startNs + flow.startNs }))
    .sort((a, b) => Number(a.startNs - b.startNs))
}

/** A SYN to each port of each address, port by port. */
function scan(site: SiteNumber, random: Random): Flow[] {
  return SCANNED_PORTS.flatMap((port, round) =>
    Array.from({ length: SCANNED_HOSTS }, (_, index) => {
      const host = index + 1
      const path: FlowPath = {
        client: infected(SCANNER_PORT),
        server: { mac: routerMac(NEW_YORK), ip: londonIp(host), port, ttl: ARRIVED_TTL },
        roundTripNs: LINE_ROUND_TRIP_NS + BigInt(random.between(20_000, 400_000)),
      }
      const packets = probe(path, { open: OPEN_PORTS.get(host), sequence: random.uint32() })
      const startNs = SCAN_AFTER_NS + BigInt(round * SCANNED_HOSTS + index) * SCAN_STEP_NS
      return { startNs, packets: seenAt(site, { packets, path, from: NEW_YORK, serverMac: londonMac(host) }) }
    }),
  )
}

/** `open` is undefined if the host does not exist. */
function probe(
  { client, server, roundTripNs }: FlowPath,
  { open, sequence }: { readonly open: readonly number[] | undefined; readonly sequence: number },
): FlowPacket[] {
  const segment = { window: 1024, options: Buffer.alloc(0), payload: Buffer.alloc(0) }
  const next = (sequence + 1) >>> 0
  const isOpen = open?.includes(server.port) === true
  const answered = { from: server, to: client, identification: 0 }
  const asked = { from: client, to: server, identification: sequence & 0xffff }
  const answer = isOpen
    ? { ...segment, sequence: ~sequence >>> 0, acknowledgment: next, flags: SYN | ACK }
    : { ...segment, sequence: 0, acknowledgment: next, flags: RST | ACK, window: 0 }
  const syn = { ...segment, sequence, acknowledgment: 0, flags: SYN }
  const reset = { ...segment, sequence: next, acknowledgment: 0, flags: RST, window: 0 }
  return [
    { offsetNs: 0n, fromClient: true, bytes: tcpPacket(asked, syn) },
    ...(open === undefined
      ? []
      : [{ offsetNs: roundTripNs, fromClient: false, bytes: tcpPacket(answered, answer) }]),
    ...(isOpen
      ? [{ offsetNs: roundTripNs + 30_000n, fromClient: true, bytes: tcpPacket(asked, reset) }]
      : []),
  ]
}

function beacons(site: SiteNumber, random: Random): Flow[] {
  return Array.from({ length: BEACONS }, (_, n) => {
    const path = {
      client: infected(49_200 + n),
      server: { mac: routerMac(NEW_YORK), ip: CONTROL_IP, port: 80, ttl: 52 },
      roundTripNs: 31_000_000n,
    }
    const tcp = new TcpConversation(path, random)
    tcp.open()
    const report = `id=7f3a&n=${n}`
    tcp.send(
      'client',
      Buffer.from(
        `POST /status HTTP/1.1\r\nHost: time-sync.example\r\nContent-Length: ${report.length}\r\n\r\n${report}`,
      ),
    )
    tcp.pause(2_000_000n)
    tcp.send('server', Buffer.from('HTTP/1.1 204 No Content\r\nServer: nginx\r\n\r\n'))
    tcp.close()
    return {
      startNs: BEACON_AFTER_NS + BigInt(n) * BEACON_INTERVAL_NS,
      packets: site === NEW_YORK ? tcp.packets : [],
    }
  })
}

/** Each query carries a part of the file; its number comes first. */
function theft(site: SiteNumber, random: Random): Flow[] {
  const file = Buffer.from(stolenFile())
  return Array.from({ length: Math.ceil(file.length / (2 * LABEL_BYTES)) }, (_, n) => {
    const at = 2 * LABEL_BYTES * n
    const labels = [at, at + LABEL_BYTES].map((from) => file.toString('hex', from, from + LABEL_BYTES))
    const path: FlowPath = {
      client: { mac: londonMac(FILE_SERVER), ip: londonIp(FILE_SERVER), port: 50_000 + n, ttl: SENT_TTL },
      server: { ...infected(53), mac: routerMac(LONDON), ttl: ARRIVED_TTL },
      roundTripNs: LINE_ROUND_TRIP_NS,
    }
    const number = String(n).padStart(3, '0')
    const name = [number, ...labels.filter((label) => label !== ''), THEFT_DOMAIN].join('.')
    const packets = dnsFlow(path, random, { name, address: INFECTED_IP })
    const startNs = THEFT_AFTER_NS + BigInt(n) * THEFT_INTERVAL_NS
    return { startNs, packets: seenAt(site, { packets, path, from: LONDON, serverMac: INFECTED_MAC }) }
  })
}

function stolenFile(): string {
  const rows = Array.from({ length: STOLEN_ROWS }, (_, n) => {
    const number = String(n + 1).padStart(4, '0')
    return `${number},Customer ${number},TEST${String(n * 7_919).padStart(8, '0')},${(n * 137) % 9_000}.00`
  })
  return `${['number,name,account,balance', ...rows].join('\n')}\n`
}

interface LineFlow {
  readonly packets: readonly FlowPacket[]
  readonly path: FlowPath
  /** The client's site. */
  readonly from: typeof NEW_YORK | typeof LONDON
  /** The server's MAC address at its own site. */
  readonly serverMac: Buffer
}

/** The packets of a flow between New York and London as a site sees them. */
function seenAt(site: SiteNumber, { packets, path, from, serverMac }: LineFlow): readonly FlowPacket[] {
  if (site === from) return packets
  if (site !== NEW_YORK && site !== LONDON) return []
  return asSeenByServer(packets, path, { site, mac: serverMac })
}

function infected(port: number): Endpoint {
  return { mac: INFECTED_MAC, ip: INFECTED_IP, port, ttl: SENT_TTL }
}

function londonIp(host: number): Buffer {
  return Buffer.from([10, 20 + LONDON, 9, host])
}

function londonMac(host: number): Buffer {
  return Buffer.from([0x02, 0x30, LONDON, 0, 0, host])
}
