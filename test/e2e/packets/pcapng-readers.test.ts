/**
 * Format=pcapng as the usual programs read it: each finds the packets without a warning, in files of one device and of
 * several, of one link type and of several. Zeek is not in Debian; it reads files by libpcap, as tcpdump does.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { httpGet } from '../../support/http-get.ts'
import { FILE, runOn } from '../../support/packets/file-programs.ts'
import { labelledCapture } from '../../support/packets/labelled-packets.ts'
import { readPcap } from '../../support/packets/pcap-records.ts'
import { readPcapng } from '../../support/packets/pcapng-reader.ts'
import {
  type SmallFleet,
  SMALL_FLEET_START_NS as START_NS,
  startFleetOf,
} from '../../support/processes/small-fleet.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'

const PYTHON = join(REPOSITORY_ROOT, '.venv', 'bin', 'python')
const READ_WITH_SCAPY = join(REPOSITORY_ROOT, 'test', 'support', 'packets', 'read-with-scapy.py')
const STEP_NS = 1_000_000n
const HOUR_NS = 3_600_000_000_000n
const PACKETS = 50
const LINK_TYPES = new Map([
  ['lon1', 1],
  ['nyc1', 1],
  ['sgp1', 101],
  ['tok1', 113],
  ['syd1', 276],
])
let fleet: SmallFleet

before(async () => {
  const captureOf = (name: string): Buffer => {
    const [device = '', part] = name.split('-')
    // The time between the two captures of a device becomes a comment.
    return labelledCapture({
      ...{ device, ports: 2, packets: PACKETS, stepNs: STEP_NS },
      ...{ startNs: part === 'first' ? START_NS : START_NS + HOUR_NS },
      ...{ linkType: LINK_TYPES.get(device), bytesOf: (packet) => 40 + packet },
    })
  }
  fleet = await startFleetOf([...LINK_TYPES.keys()], { captureOf })
})
after(() => fleet[Symbol.asyncDispose]())

/** What a reader finds of each packet, as far as it shows it. */
interface Found {
  readonly ns?: bigint
  readonly interfaceName?: string | undefined
  readonly originalLength?: number
  readonly captured?: Buffer
}

interface Reader {
  readonly name: string
  readonly words: readonly [string, ...string[]]
  /** libpcap rejects files of several link types. */
  readonly readsOneLinkType?: boolean
  readonly found: (output: Buffer) => readonly Found[]
}

const ofPcapng = (output: Buffer): Required<Found>[] => {
  const { packets, interfaces } = readPcapng(output)
  return packets.map(({ port, ns, originalLength, captured }) => ({
    ...{ ns, originalLength, captured, interfaceName: interfaces[port]?.name },
  }))
}
const ofPcap = (output: Buffer): readonly Found[] => readPcap(output).records

const READERS: readonly Reader[] = [
  {
    name: 'capinfos',
    words: ['capinfos', '-M', '-c', FILE],
    found: (output) =>
      Array.from({ length: Number(/^Number of packets: +(\d+)$/m.exec(String(output))?.[1]) }, () => ({})),
  },
  {
    name: 'tshark',
    words: ['tshark', '-r', FILE, '-T', 'fields', '-e', 'frame.interface_name', '-e', 'frame.len'],
    found: (output) =>
      linesOf(output).map((line) => {
        const [interfaceName, length] = line.split('\t')
        return { interfaceName, originalLength: Number(length) }
      }),
  },
  { name: 'editcap', words: ['editcap', FILE, '-'], found: ofPcapng },
  { name: 'mergecap', words: ['mergecap', '-w', '-', FILE], found: ofPcapng },
  {
    name: 'tcpdump',
    words: ['tcpdump', '-Z', 'root', '--nano', '-r', FILE, '-w', '-'],
    readsOneLinkType: true,
    found: ofPcap,
  },
  {
    name: 'scapy',
    words: [PYTHON, READ_WITH_SCAPY, FILE],
    found: (output) =>
      linesOf(output).map((line) => {
        const [ns = '', interfaceName, length, captured = ''] = line.split(' ')
        return {
          ...{ ns: BigInt(ns), interfaceName, originalLength: Number(length) },
          captured: Buffer.from(captured, 'hex'),
        }
      }),
  },
]

function linesOf(output: Buffer): string[] {
  return output.toString().split('\n').slice(0, -1)
}

const RANGE = `/api/v1/pcap/timerange?TSBegin=${START_NS}&TSEnd=${START_NS + 2n * HOUR_NS}&Format=pcapng`

interface Case {
  readonly name: string
  /** Asked of the first device itself. */
  readonly isOfDevice?: boolean
  readonly query: string
  readonly captures: number
  /** Packets with one. */
  readonly comments: number
  readonly isMixed?: boolean
}

const CASES: readonly Case[] = [
  { name: 'a device', isOfDevice: true, query: '', captures: 2, comments: 1 },
  { name: 'a device through the gateway', query: '&Device=lon1', captures: 2, comments: 1 },
  { name: 'two devices', query: '&Device=lon1,nyc1', captures: 4, comments: 2 },
  { name: 'no packets', query: '&Device=lon1,nyc1&FilterBPF=vlan+4000', captures: 0, comments: 0 },
  { name: 'five devices of four link types', query: '', captures: 10, comments: 5, isMixed: true },
]

for (const { name, query, captures, comments, isOfDevice, isMixed } of CASES) {
  test(`readers of ${name}`, async (t) => {
    const [device] = fleet.appliances
    assert.ok(device)
    const { status, body } = isOfDevice
      ? await device.get(RANGE)
      : await httpGet(fleet.gateway.url + RANGE + query, { headers: fleet.gateway.as.full })
    assert.equal(status, 200, body.toString('utf8', 0, 400))
    const file = readPcapng(body)
    assert.equal(file.packets.length, captures * PACKETS)
    assert.equal(file.packets.filter((packet) => packet.comments.length > 0).length, comments)
    const expected = ofPcapng(body)
    const readers = READERS.filter(({ readsOneLinkType }) => !(readsOneLinkType && isMixed))
    for (const reader of readers) {
      const found = reader.found(runOn(device.folder, body, reader.words))
      const shown = Object.keys(found[0] ?? {}) as (keyof Found)[]
      assert.deepEqual(
        found,
        expected.map((packet) => Object.fromEntries(shown.map((field) => [field, packet[field]]))),
        reader.name,
      )
    }
    t.diagnostic(`read by ${readers.map((reader) => reader.name).join(', ')}`)
  })
}
