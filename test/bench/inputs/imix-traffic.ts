/**
 * The packets of the benches: sizes 7:4:1 (mean about 340 bytes), 20,000 flows, some of which are far busier than
 * others, payloads from random to repetitive, some VLAN and IPv6, correct checksums, and one needle flow of 58 packets.
 * The seed determines them.
 */
import type { Endpoint } from '../../../src/demo/traffic/packet-bytes.ts'
import { icmpEchoPacket, tcpPacket, udpPacket } from '../../../src/demo/traffic/packet-bytes.ts'
import { PcapFile } from '../../../src/demo/traffic/pcap-file.ts'
import { Random } from '../../../src/demo/traffic/random.ts'
import { payloadPool } from './payload-pool.ts'

export interface ImixOptions {
  readonly seed: number
  readonly startNs: bigint
  /** Bytes of all files together, roughly. */
  readonly bytes: number
  /** Packets that go to one file before another is chosen; default 1, the worst case for a merge. */
  readonly burstPackets?: number
}

export interface ImixTraffic {
  readonly packets: number
  readonly bytes: number
  readonly firstNs: bigint
  readonly lastNs: bigint
}

interface Flow {
  readonly client: Endpoint
  readonly server: Endpoint
  readonly vlan: number | undefined
  clientSequence: number
  serverSequence: number
  identification: number
}

type Kind = keyof typeof SHARES

/** Out of a hundred packets. */
const SHARES = { tls: 42, http: 16, market: 15, json: 12, bulk: 8, dns: 6, icmp: 1 } as const
const PORTS: Readonly<Record<Kind, number>> = {
  tls: 443,
  http: 80,
  market: 26_400,
  json: 8080,
  bulk: 873,
  dns: 53,
  icmp: 0,
}
const KINDS = Object.keys(SHARES) as Kind[]
const FLOWS = 20_000
const NEEDLE_PACKETS = 58
/** The needle's server port, used by no other flow. */
const NEEDLE_PORT = 31_337
const MEAN_GAP_NS = 9_000
const MEAN_RECORD_BYTES = 345
const HEADERS_BYTES = 66
const PSH_ACK = 24
/** Timestamp option with padding; the values do not matter here. */
const TCP_OPTIONS = Buffer.from([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1])

/** Writes nanosecond PCAP files that interleave in time; with one path, one file. */
export async function writeImixTraffic(paths: readonly string[], options: ImixOptions): Promise<ImixTraffic> {
  await using owner = new AsyncDisposableStack()
  const files: PcapFile[] = []
  for (const path of paths) files.push(owner.use(await PcapFile.create(path)))
  const random = new Random(options.seed, 'imix')
  const source = new PacketSource(random, Math.ceil(options.bytes / MEAN_RECORD_BYTES))
  const burstPackets = options.burstPackets ?? 1
  let [packets, bytes, timestampNs] = [0, 0, options.startNs]
  let file = random.pick(files)
  while (bytes < options.bytes) {
    if (packets % burstPackets === 0) file = random.pick(files)
    const packet = source.next()
    timestampNs += BigInt(1 + Math.round(random.exponential(MEAN_GAP_NS)))
    if (!file.hasRoom(packet.byteLength)) await file.flush()
    file.append(timestampNs, packet)
    packets++
    bytes += 16 + packet.byteLength
  }
  for (const each of files) await each.flush()
  return { packets, bytes, firstNs: options.startNs, lastNs: timestampNs }
}

class PacketSource {
  readonly #random: Random
  readonly #flows: Readonly<Record<Kind, readonly Flow[]>>
  readonly #pools: Readonly<Record<Kind, Buffer>>
  readonly #needle: Flow
  readonly #needleEvery: number
  #made = 0

  constructor(random: Random, expectedPackets: number) {
    this.#random = random
    this.#needleEvery = Math.max(2, Math.floor((expectedPackets * 0.9) / NEEDLE_PACKETS))
    const each = <T>(make: (kind: Kind) => T) =>
      Object.fromEntries(KINDS.map((kind) => [kind, make(kind)])) as Record<Kind, T>
    this.#pools = each((kind) => payloadPool(random, kind))
    this.#flows = each((kind) =>
      Array.from({ length: Math.ceil((FLOWS * SHARES[kind]) / 100) }, (_, n) => makeFlow(random, kind, n)),
    )
    this.#needle = { ...makeFlow(random, 'tls', 7), vlan: undefined }
    this.#needle = {
      ...this.#needle,
      client: { ...this.#needle.client, ip: Buffer.from([10, 99, 99, 99]) },
      server: { ...this.#needle.server, ip: Buffer.from([192, 0, 2, 99]), port: NEEDLE_PORT },
    }
  }

  next(): Buffer {
    this.#made++
    const nth = this.#made / this.#needleEvery
    if (Number.isInteger(nth) && nth <= NEEDLE_PACKETS) return this.#tcp(this.#needle, Buffer.alloc(100, nth))
    const kind = this.#pickKind()
    const flow = this.#random.pick(this.#flows[kind], 3)
    const payload = this.#payload(kind)
    if (kind === 'market' || kind === 'dns') return this.#udp(flow, payload)
    if (kind === 'icmp') return this.#icmp(flow, payload)
    return this.#tcp(flow, payload)
  }

  #pickKind(): Kind {
    let left = this.#random.below(100)
    for (const kind of KINDS) {
      left -= SHARES[kind]
      if (left < 0) return kind
    }
    return 'tls'
  }

  /** A piece of the kind's pool. */
  #payload(kind: Kind): Buffer {
    const random = this.#random
    const frameBytes = this.#frameBytes(kind)
    const payloadBytes = Math.max(0, frameBytes - HEADERS_BYTES)
    const pool = this.#pools[kind]
    const start = random.below(pool.byteLength - payloadBytes)
    return pool.subarray(start, start + payloadBytes)
  }

  /** Bulk traffic is the large packets of the mix: one in twelve. */
  #frameBytes(kind: Kind): number {
    if (kind === 'bulk') return 1514
    if (kind === 'dns') return this.#random.between(76, 180)
    if (kind === 'icmp') return 98
    return this.#random.below(11) < 7 ? 60 : 570
  }

  #tcp(flow: Flow, payload: Buffer): Buffer {
    const fromClient = this.#random.chance(0.5)
    const sequence = fromClient ? flow.clientSequence : flow.serverSequence
    const acknowledgment = fromClient ? flow.serverSequence : flow.clientSequence
    const next = (sequence + payload.byteLength) >>> 0
    if (fromClient) flow.clientSequence = next
    else flow.serverSequence = next
    const segment = { sequence, acknowledgment, flags: PSH_ACK, window: 502, options: TCP_OPTIONS, payload }
    return tcpPacket(direction(flow, fromClient), segment)
  }

  #udp(flow: Flow, payload: Buffer): Buffer {
    return udpPacket(direction(flow, flow.server.port !== 53 || this.#random.chance(0.5)), payload)
  }

  #icmp(flow: Flow, payload: Buffer): Buffer {
    return icmpEchoPacket(direction(flow, true), {
      type: 8,
      identifier: 1,
      sequence: flow.identification,
      payload,
    })
  }
}

function direction(flow: Flow, fromClient: boolean) {
  const [from, to] = fromClient ? [flow.client, flow.server] : [flow.server, flow.client]
  flow.identification = (flow.identification + 1) & 0xffff
  return { from, to, vlan: flow.vlan, identification: flow.identification }
}

function makeFlow(random: Random, kind: Kind, n: number): Flow {
  const isIpv6 = kind !== 'icmp' && n % 16 === 3
  const address = (net: number) => {
    if (!isIpv6) return Buffer.from([10, net, random.below(256), random.between(1, 254)])
    return Buffer.concat([Buffer.from([0x20, 0x01, 0x0d, 0xb8, 0, net]), random.bytes(10)])
  }
  const mac = (side: number) => Buffer.from([2, side, 0, 0, n >> 8, n & 0xff])
  return {
    client: { mac: mac(1), ip: address(random.between(1, 9)), port: random.between(32_768, 60_999), ttl: 64 },
    server: { mac: mac(2), ip: address(random.between(100, 120)), port: PORTS[kind], ttl: 57 },
    vlan: n % 12 === 5 ? 100 + (n % 7) : undefined,
    clientSequence: random.uint32(),
    serverSequence: random.uint32(),
    identification: random.below(0x10000),
  }
}
