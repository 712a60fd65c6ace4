// FilterBPFDecap against tshark: which packets a filter selects by the innermost frame. The engine's own tests
// (decapsulation_test.cc) have each kind of tunnel, built and cut.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { capturesNamed, STORABLE_FILES } from '../support/packets/capture-files.ts'
import { makePcap } from '../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap, recordLines } from '../support/packets/pcap-records.ts'
import { startTempAppliance, type TempAppliance } from '../support/processes/temp-appliance.ts'
import { seededRandom } from '../support/seeded-random.ts'

/** tshark's view of the innermost layers of a packet. */
interface Innermost {
  /** The innermost network layer, or "" if the innermost frame has none. */
  readonly network: string
  /** Its protocol number. */
  readonly protocol: number
  readonly ethernetSource: string
  readonly source: string
  readonly destination: string
  readonly sourcePort: string
  readonly destinationPort: string
}

const FIELDS = [
  'frame.protocols',
  'eth.src',
  'ip.src',
  'ip.dst',
  'ipv6.src',
  'ipv6.dst',
  'ip.proto',
  'ipv6.nxt',
  'tcp.srcport',
  'tcp.dstport',
  'udp.srcport',
  'udp.dstport',
]
const ICMP = 1
const TCP = 6
const UDP = 17
const NETWORK_LAYERS = new Set(['ip', 'ipv6', 'arp'])

function innermostOf(path: string): (Innermost | undefined)[] {
  const decoding = [
    '-d',
    'udp.port==8472,vxlan',
    '-d',
    'mpls.label==5000,pwethcw',
    '-o',
    'ip.defragment:FALSE',
  ]
  const fields = FIELDS.flatMap((field) => ['-e', field])
  const output = execFileSync(
    'tshark',
    ['-r', path, ...decoding, '-T', 'fields', '-E', 'occurrence=l', '-E', 'separator=|', ...fields],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  )
  return output.split('\n').slice(0, -1).map(parseLine)
}

/** undefined for a packet that this version of tshark does not decode to its end. */
function parseLine(line: string): Innermost | undefined {
  const [chain = '', ethernetSource = '', ...fields] = line.split('|')
  const [ip4 = '', ip4To = '', ip6 = '', ip6To = '', protocol4, protocol6, ...ports] = fields
  const layers = chain.split(':')
  const index = layers.findLastIndex((name) => NETWORK_LAYERS.has(name))
  const network = index > layers.lastIndexOf('eth') ? (layers[index] ?? '') : ''
  const isBrokenHeader = network === 'ip' && ip4 === ''
  const isUnknownVersion = layers.at(-1) === 'avsp'
  if (isBrokenHeader || isUnknownVersion) return undefined
  const isIpv4 = network === 'ip'
  const protocol = Number((isIpv4 ? protocol4 : protocol6) || -1)
  const [tcp = '', tcpTo = '', udp = '', udpTo = ''] = ports
  return {
    network,
    protocol,
    ethernetSource,
    source: isIpv4 ? ip4 : ip6,
    destination: isIpv4 ? ip4To : ip6To,
    sourcePort: protocol === TCP ? tcp : udp,
    destinationPort: protocol === TCP ? tcpTo : udpTo,
  }
}

type Selects = (packet: Innermost) => boolean

/** Filters for everything that occurs in a capture, each with the packets that it must select. */
function filtersFor(packets: readonly Innermost[]): Map<string, Selects> {
  const isIp = ({ network }: Innermost) => network === 'ip' || network === 'ipv6'
  const filters = new Map<string, Selects>([
    ['ip', ({ network }) => network === 'ip'],
    ['ip6', ({ network }) => network === 'ipv6'],
    ['arp', ({ network }) => network === 'arp'],
    ['tcp', (packet) => isIp(packet) && packet.protocol === TCP],
    ['udp', (packet) => isIp(packet) && packet.protocol === UDP],
    ['icmp', ({ network, protocol }) => network === 'ip' && protocol === ICMP],
    ['vlan', () => false],
    ['mpls', () => false],
  ])
  for (const { network, protocol, ethernetSource, source, destinationPort } of packets) {
    filters.set(`ether src ${ethernetSource}`, (packet) => packet.ethernetSource === ethernetSource)
    if (network !== 'ip' && network !== 'ipv6') continue
    const version = network === 'ip' ? 'ip' : 'ip6'
    filters.set(`${version} src ${source}`, (packet) => isIp(packet) && packet.source === source)
    filters.set(`${version} dst ${source}`, (packet) => isIp(packet) && packet.destination === source)
    if (destinationPort === '' || (protocol !== TCP && protocol !== UDP)) continue
    filters.set(
      `${protocol === TCP ? 'tcp' : 'udp'} port ${destinationPort}`,
      (packet) =>
        isIp(packet) &&
        packet.protocol === protocol &&
        (packet.sourcePort === destinationPort || packet.destinationPort === destinationPort),
    )
  }
  return filters
}

const IS_LONG = process.env.CAPFLEET_LONG === '1'
const random = seededRandom()

/** The first, which ask for protocols, and some for addresses and ports; at night all. */
function someOf<Filter>(filters: readonly Filter[]): readonly Filter[] {
  if (IS_LONG) return filters
  const [protocols, others] = [filters.slice(0, 6), filters.slice(6)]
  const count = Math.min(others.length, 8)
  return [...protocols, ...Array.from({ length: count }, () => random.pick(others))]
}

/** The records in file order; the store has them in order of time. */
function recordsOf(path: string): readonly PcapRecord[] {
  return readPcap(execFileSync('editcap', ['-F', 'nsecpcap', path, '-'], { maxBuffer: 1 << 28 })).records
}

/** Their UDP lengths are 0 (for more than 64 KiB), where tshark stops. */
const BIG = ['big-tcp.pcap', 'tcpdump_bigtcp-ipv4-vxlan-ipv4.pcap']

/**
 * tshark and libpcap treat cut headers and IPv6 fragments by different rules; the other packets are the same as in
 * plain.pcap and mixed.pcap.
 */
const LEFT_OUT = [
  ...BIG,
  'mixed-truncated.pcap',
  'no-bytes.pcap',
  'fragments.pcap',
  'plain-microseconds.pcap',
  'mixed-out-of-order.pcap',
  'big-endian.pcap',
]

const ethernetCaptures = STORABLE_FILES.filter(
  (path) =>
    path.endsWith('.pcap') &&
    !LEFT_OUT.includes(basename(path)) &&
    execFileSync('capinfos', ['-T', '-r', '-E', path]).includes('ether'),
)

describe('FilterBPFDecap selects by the layers that tshark finds innermost', () => {
  let appliance: TempAppliance
  const recordsBy = new Map(ethernetCaptures.map((path) => [path, recordsOf(path)]))
  const innermostBy = new Map<string, readonly (Innermost | undefined)[]>()
  before(async () => {
    appliance = await startTempAppliance()
    // One file of all: each start of tshark takes longer than all that it reads here.
    const all = join(appliance.folder, 'all.pcap')
    execFileSync('mergecap', ['-a', '-F', 'nsecpcap', '-w', all, ...ethernetCaptures])
    const innermost = innermostOf(all)
    for (const [path, { length }] of recordsBy) innermostBy.set(path, innermost.splice(0, length))
    assert.equal(innermost.length, 0)
  })
  after(() => appliance[Symbol.asyncDispose]())

  for (const path of ethernetCaptures) {
    test(`${basename(path)} (SEED=${random.seed})`, async (t) => {
      const name = basename(path)
      await appliance.importFiles(name, path)
      const lines = recordLines(recordsBy.get(path) ?? [])
      const packets = innermostBy.get(path) ?? []
      assert.equal(packets.length, lines.length)
      const isDecoded = new Map(lines.map((line, index) => [line, packets[index] !== undefined]))
      const filters = someOf([...filtersFor(packets.filter((packet) => packet !== undefined))])
      for (const [filter, selects] of filters) {
        const answer = await appliance.get(
          `/api/v1/pcap/single?StreamName=${name}&FilterBPFDecap=true&FilterBPF=${encodeURIComponent(filter)}`,
        )
        assert.equal(answer.status, 200, answer.body.toString('utf8', 0, 400))
        const expected = lines.filter((_, index) => {
          const packet = packets[index]
          return packet !== undefined && selects(packet)
        })
        const selected = recordLines(readPcap(answer.body).records).filter((line) => isDecoded.get(line))
        assert.deepEqual(selected.sort(), expected.sort(), filter)
      }
      t.diagnostic(`${filters.length} filters over ${packets.length} packets`)
    })
  }

  test('finds the inner TCP of a packet above 64 KiB, whose lengths are 0', async () => {
    for (const path of capturesNamed(...BIG)) {
      const name = basename(path)
      await appliance.importFiles(name, path)
      for (const [filter, count] of [
        ['tcp', 1],
        ['ip src 10.0.0.3 or ip src 192.168.1.2', 1],
        ['udp', 0],
      ] as const) {
        const answer = await appliance.get(
          `/api/v1/pcap/single?StreamName=${name}&FilterBPFDecap=true&FilterBPF=${encodeURIComponent(filter)}`,
        )
        assert.equal(readPcap(answer.body).records.length, count, filter)
      }
    }
  })
})

const ETHERNET_BYTES = 14
const LLC_TYPE = 4

/** What precedes the payload of a frame in captures of another link type; undefined: such a capture cannot have it. */
type Header = (type: number, payload: Buffer) => Buffer | undefined

const cooked: Header = (type) => {
  const header = Buffer.from([0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 0, 0])
  header.writeUInt16BE(type <= 1500 ? LLC_TYPE : type, 14)
  return header
}
const cooked2: Header = (type) => {
  const header = Buffer.from([0, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0])
  header.writeUInt16BE(type <= 1500 ? LLC_TYPE : type, 0)
  return header
}
const raw: Header = (type, payload) => {
  const version = type === 0x0800 ? 4 : type === 0x86dd ? 6 : 0
  return version > 0 && (payload[0] ?? 0) >> 4 === version ? Buffer.alloc(0) : undefined
}

function converted({ ns, originalLength, captured }: PcapRecord, headerOf: Header): PcapRecord | undefined {
  if (captured.length <= ETHERNET_BYTES || originalLength < captured.length) return undefined
  const payload = captured.subarray(ETHERNET_BYTES)
  const header = headerOf(captured.readUInt16BE(ETHERNET_BYTES - 2), payload)
  if (header === undefined) return undefined
  const bytes = Buffer.concat([header, payload])
  return { ns, originalLength: originalLength + bytes.length - captured.length, captured: bytes }
}

describe('FilterBPFDecap looks inside captures of other link types, as tshark does', () => {
  let appliance: TempAppliance
  before(async () => {
    appliance = await startTempAppliance()
  })
  after(() => appliance[Symbol.asyncDispose]())

  for (const [name, linkType, headerOf] of [
    ['cooked', 113, cooked],
    ['cooked2', 276, cooked2],
    ['raw', 101, raw],
    ['raw12', 12, raw],
  ] as const)
    test(`${name} (SEED=${random.seed})`, async (t) => {
      const records = ethernetCaptures
        .flatMap((path) => recordsOf(path).map((record) => converted(record, headerOf)))
        .filter((record) => record !== undefined)
      const path = join(appliance.folder, `${name}.pcap`)
      await writeFile(path, makePcap(records, { linkType }))
      await appliance.importFiles(name, path)
      const lines = recordLines(records)
      const isRaw = headerOf === raw
      const packets = innermostOf(path).map((packet) =>
        // A raw capture cannot show what is not IP.
        isRaw && packet?.network !== 'ip' && packet?.network !== 'ipv6' ? undefined : packet,
      )
      assert.equal(packets.length, lines.length)
      const isDecoded = new Map(lines.map((line, index) => [line, packets[index] !== undefined]))
      const all = [...filtersFor(packets.filter((packet) => packet !== undefined))].filter(
        ([filter]) => !/^(ether|vlan|mpls)/.test(filter) && !(isRaw && filter === 'arp'),
      )
      const filters = someOf(all)
      let selectedCount = 0
      for (const [filter, selects] of filters) {
        const answer = await appliance.get(
          `/api/v1/pcap/single?StreamName=${name}&FilterBPFDecap=true&FilterBPF=${encodeURIComponent(filter)}`,
        )
        assert.equal(answer.status, 200, answer.body.toString('utf8', 0, 400))
        const expected = lines.filter((_, index) => {
          const packet = packets[index]
          return packet !== undefined && selects(packet)
        })
        const selected = recordLines(readPcap(answer.body).records).filter((line) => isDecoded.get(line))
        assert.deepEqual(selected.sort(), expected.sort(), filter)
        selectedCount += selected.length
      }
      assert.ok(selectedCount > 100)
      t.diagnostic(`${filters.length} filters over ${packets.length} packets`)
    })

  test('and refuses link types in which it finds no tunnels', async () => {
    const path = join(appliance.folder, 'wlan.pcap')
    await writeFile(
      path,
      makePcap([{ ns: 1n, originalLength: 30, captured: Buffer.alloc(30) }], { linkType: 105 }),
    )
    await appliance.importFiles('wlan', path)
    const url = '/api/v1/pcap/single?StreamName=wlan&FilterBPF=ip'
    assert.equal((await appliance.get(url)).status, 200)
    const { status, body } = await appliance.get(`${url}&FilterBPFDecap=true`)
    assert.equal(status, 400)
    assert.match(body.toString(), /FilterBPFDecap finds no tunnels in packets of link type 105/)
  })
})
