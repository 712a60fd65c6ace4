// tcpdump, with the filters that flows become, on packets that differ from them in one fact.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import {
  type FlowTexts,
  flowFilter,
  flowKey,
  readFlow,
} from '../../../../../src/shared/query/flow/flow-filter.ts'
import {
  bytesOf,
  ethernet,
  ipv4,
  ipv6,
  PROTOCOL,
  TYPE,
  tagged,
  udp,
} from '../../../../support/packets/packet-layers.ts'
import { makePcap } from '../../../../support/packets/packet-maker.ts'
import { readPcap } from '../../../../support/packets/pcap-records.ts'

/** Texts of a flow in the order in which links have them. */
type Five = readonly [source: string, destination: string, protocol?: string, sport?: string, dport?: string]

function flowOf([source, destination, protocol = '', sport = '', dport = '']: Five) {
  const texts: FlowTexts = {
    source: { name: 'src', text: source },
    destination: { name: 'dst', text: destination },
    protocol: { name: 'proto', text: protocol },
    sourcePort: { name: 'sport', text: sport },
    destinationPort: { name: 'dport', text: dport },
  }
  return readFlow(texts)
}

/** A packet with its facts, in a readable form. */
interface Made {
  readonly facts: readonly string[]
  readonly frame: Buffer
}

const PORTED = [6, 17, 132]

/** All combinations of a few hosts, protocols, ports and tags. */
function allPackets(): readonly Made[] {
  const made: Made[] = []
  for (const bits of [32, 128] as const)
    for (const [from, to] of [
      [1, 2],
      [1, 3],
      [3, 2],
    ] as const)
      for (const protocol of [1, 6, 17, 47, 58, 132])
        for (const [sport, dport] of [
          [1_000, 53],
          [53, 1_000],
          [1_000, 1_000],
        ] as const)
          for (const tags of [0, 1, 2]) made.push(packetOf({ bits, from, to, protocol, sport, dport, tags }))
  return made
}

interface Facts {
  readonly bits: 32 | 128
  readonly from: number
  readonly to: number
  readonly protocol: number
  readonly sport: number
  readonly dport: number
  readonly tags: number
}

function packetOf({ bits, from, to, protocol, sport, dport, tags }: Facts): Made {
  // All protocols with ports have them in the same place.
  const payload = Buffer.concat([bytesOf(sport, 2), bytesOf(dport, 2), udp(9, 9, Buffer.alloc(20))])
  const packet = bits === 32 ? ipv4(protocol, payload, { from, to }) : ipv6(protocol, payload, { from, to })
  const type = bits === 32 ? TYPE.ipv4 : TYPE.ipv6
  const frame =
    tags === 0
      ? ethernet(type, packet)
      : tags === 1
        ? ethernet(TYPE.vlan, tagged(5, type, packet))
        : ethernet(TYPE.serviceVlan, tagged(6, TYPE.vlan, tagged(5, type, packet)))
  const [source, destination] =
    bits === 32 ? [`10.0.0.${from}`, `10.0.1.${to}`] : [`2001:db8::${from}`, `2001:db8:1::${to}`]
  return { facts: [source, destination, String(protocol), String(sport), String(dport)], frame }
}

/** The conversation of the packet has everything that the flow names. */
function isOf({ facts }: Made, [source, destination, protocol = '', sport = '', dport = '']: Five): boolean {
  const [from, to, number, first, second] = facts
  const isSame = (asked: string, fact: string | undefined) => asked === '' || asked === fact
  const hasPorts = PORTED.includes(Number(protocol || number))
  if (protocol === '' && (sport !== '' || dport !== '') && !PORTED.includes(Number(number))) return false
  const [asked, other] = hasPorts ? [sport, dport] : ['', '']
  const isForward =
    isSame(source, from) && isSame(destination, to) && isSame(asked, first) && isSame(other, second)
  const isBackward =
    isSame(source, to) && isSame(destination, from) && isSame(asked, second) && isSame(other, first)
  return isSame(protocol, number) && (isForward || isBackward)
}

const FLOWS: readonly Five[] = [
  ['10.0.0.1', '10.0.1.2', '6', '1000', '53'],
  ['10.0.1.2', '10.0.0.1', '6', '53', '1000'],
  ['10.0.0.1', '10.0.1.2', '17', '1000', '53'],
  ['10.0.0.1', '10.0.1.2', '132', '1000', '1000'],
  ['10.0.0.1', '10.0.1.2', '6', '', '53'],
  ['10.0.0.1', '10.0.1.2', '', '1000', '53'],
  ['10.0.0.1', '10.0.1.2', '1', '8', '0'],
  ['10.0.0.1', '10.0.1.2', '47'],
  ['10.0.0.1', '10.0.1.2'],
  ['10.0.0.1', ''],
  ['', '10.0.1.2'],
  ['', '10.0.1.2', '17', '', '53'],
  ['10.0.0.3', '', '', '', '53'],
  ['2001:db8::1', '2001:db8:1::2', '6', '1000', '53'],
  ['2001:db8::1', '2001:db8:1::2', '58'],
  ['2001:db8::1', '2001:db8:1::2', '47'],
  ['2001:db8::1', '2001:db8:1::2', '', '', '53'],
  ['2001:db8:1::2', ''],
]

test('finds exactly the packets of a flow: both directions, with and without tags, IPv4 and IPv6', () => {
  const packets = allPackets()
  const file = makePcap(
    packets.map(({ frame }, index) => ({ ns: BigInt(index), originalLength: frame.length, captured: frame })),
  )
  for (const flow of FLOWS) {
    const filter = flowFilter(flowOf(flow), { isInnermost: false })
    const found = execFileSync('tcpdump', ['-r', '-', '-w', '-', '--nano', filter], {
      input: file,
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    const indexes = readPcap(found).records.map(({ ns }) => Number(ns))
    const expected = packets.flatMap((packet, index) => (isOf(packet, flow) ? [index] : []))
    assert.ok(expected.length > 0, flow.join())
    assert.deepEqual(indexes, expected, `${flow.join()}: ${filter}`)
  }
})

test('one name of ICMP is that of both versions of IP', () => {
  assert.equal(flowOf(['2001:db8::1', '2001:db8::2', 'ICMP', '135', '0']).protocol, PROTOCOL.icmp6)
  assert.equal(flowOf(['10.0.0.1', '10.0.0.2', 'icmp', '8', '0']).protocol, PROTOCOL.icmp)
  assert.equal(flowOf(['10.0.0.1', '10.0.0.2', 'icmp', '8', '0']).source.port, undefined)
})

test('the key of a flow is that of its other direction, and of no other flow', () => {
  const key = (five: Five) => flowKey(flowOf(five))
  const one: Five = ['10.0.0.1', '10.0.0.2', 'tcp', '1', '2']
  assert.equal(key(one), key(['10.0.0.2', '10.0.0.1', 'TCP', '2', '1']))
  assert.equal(key(['::ffff:10.0.0.1', '10.0.0.2', '6', '1', '2']), key(one))
  for (const other of [
    ['10.0.0.1', '10.0.0.2', 'tcp', '2', '1'],
    ['10.0.0.1', '10.0.0.2', 'udp', '1', '2'],
    ['10.0.0.1', '10.0.0.2', 'tcp', '1'],
    ['10.0.0.1', '', 'tcp', '1', '2'],
  ] as const)
    assert.notEqual(key(other), key(one))
})

test('refuses texts by name', () => {
  for (const [five, said] of [
    [['', ''], /^src and dst are missing/],
    [['10.0.0.0/8', ''], /^src must be a single address/],
    [['x', ''], /^src "x" is no IPv4 or IPv6 address/],
    [['10.0.0.1', '10.0.0.1:80'], /^dst "10\.0\.0\.1:80" is no .*without the port/],
    [['10.0.0.1', '::1'], /^dst "::1" and src "10\.0\.0\.1" must both be IPv4 or both be IPv6/],
    [['10.0.0.1', '', 'http'], /^proto "http" is not a known protocol/],
    [['10.0.0.1', '', '256'], /^proto "256"/],
    [['10.0.0.1', '', 'tcp', '65536'], /^sport must be a port from 0 to 65535/],
    [['10.0.0.1', '', 'tcp', '', 'https'], /^dport must be a port/],
  ] as const)
    assert.throws(() => flowOf(five as Five), { code: 'bad-parameter', message: said })
})
