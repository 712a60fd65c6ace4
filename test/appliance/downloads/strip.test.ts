/** Strip: what is left of a packet, beside filters, slices, Dedup and the times of switches. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { makePcap } from '../../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'

const START_NS = 1_793_610_000_000_000_000n
const SINGLE = '/api/v1/pcap/single'
/** Bytes that were not captured. */
const CUT = 100

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(' ', ''), 'hex')
const ethernet = (id: number, type: string) => bytes(`02 00 00 00 00 0${id} 02 00 00 00 01 0${id} ${type}`)
const ipv4 = (id: number, protocol: string, payloadBytes: number) => {
  const header = bytes(`45 00 00 00 00 00 00 00 40 ${protocol} 00 00 0a 00 00 0${id} 0a 00 01 0${id}`)
  header.writeUInt16BE(20 + payloadBytes + CUT, 2)
  return header
}
const udp = (port: number, payloadBytes: number) => {
  const header = bytes('13 88 00 00 00 00 00 00')
  header.writeUInt16BE(port, 2)
  header.writeUInt16BE(8 + payloadBytes + CUT, 4)
  return header
}

/** What the inner packet is followed by. */
const DATA = Buffer.alloc(40, 'payload')
const INNER = Buffer.concat([ipv4(9, '11', 48), udp(53, 40), DATA])
const TAGGED = Buffer.concat([ethernet(9, '81 00'), bytes('00 06 08 00'), INNER])
const VXLAN = Buffer.concat([bytes('08 00 00 00 00 00 07 00'), TAGGED])
const OUTER = Buffer.concat([ipv4(1, '11', 8 + VXLAN.length), udp(4789, VXLAN.length), VXLAN])

const PACKETS = {
  plain: Buffer.concat([ethernet(1, '08 00'), INNER]),
  vlan: Buffer.concat([ethernet(1, '81 00'), bytes('00 05 08 00'), INNER]),
  mpls: Buffer.concat([ethernet(1, '81 00'), bytes('00 05 88 47 00 01 01 40'), INNER]),
  vxlan: Buffer.concat([ethernet(1, '81 00'), bytes('00 05 08 00'), OUTER]),
  arp: Buffer.concat([ethernet(1, '08 06'), Buffer.alloc(46)]),
  short: ethernet(1, '81 00').subarray(0, 13),
} as const
type Name = keyof typeof PACKETS

const EXPECTED: Readonly<Record<string, Readonly<Partial<Record<Name, Buffer>>>>> = {
  vlan: {
    vlan: PACKETS.plain,
    mpls: Buffer.concat([ethernet(1, '88 47'), bytes('00 01 01 40'), INNER]),
    vxlan: Buffer.concat([ethernet(1, '08 00'), OUTER]),
  },
  mpls: { mpls: PACKETS.vlan },
  tunnels: { vxlan: TAGGED },
  'mpls,vlan': {
    vlan: PACKETS.plain,
    mpls: PACKETS.plain,
    vxlan: Buffer.concat([ethernet(1, '08 00'), OUTER]),
  },
  all: {
    vlan: PACKETS.plain,
    mpls: PACKETS.plain,
    vxlan: Buffer.concat([ethernet(9, '08 00'), INNER]),
  },
}

const NAMES = Object.keys(PACKETS) as Name[]
const STORED: readonly PcapRecord[] = NAMES.map((name, index) => recordOf(PACKETS[name], index))

function recordOf(captured: Buffer, index: number): PcapRecord {
  return { ns: START_NS + BigInt(index) * 1_001n, originalLength: captured.length + CUT, captured }
}

function strippedRecords(kinds: string): PcapRecord[] {
  return NAMES.map((name, index) => recordOf(EXPECTED[kinds]?.[name] ?? PACKETS[name], index))
}

describe('Strip', () => {
  let appliance: TempAppliance
  const ask = async (query: string, capture = 'made') => {
    const answer = await appliance.get(`${SINGLE}?StreamName=${capture}&${query}`)
    assert.equal(answer.status, 200, answer.body.toString('utf8', 0, 400))
    return answer
  }
  const recordsFor = async (query: string) => readPcap((await ask(query)).body).records
  const store = async (name: string, records: readonly PcapRecord[], linkType = 1) => {
    const path = join(appliance.folder, `${name}.pcap`)
    await writeFile(path, makePcap(records, { linkType }))
    await appliance.importFiles(name, path)
  }

  before(async () => {
    appliance = await startTempAppliance()
    await store('made', STORED)
  })
  after(() => appliance[Symbol.asyncDispose]())

  for (const kinds of Object.keys(EXPECTED))
    test(`removes ${kinds}, and shortens the original length by as much`, async () => {
      const expected = strippedRecords(kinds)
      assert.deepEqual(recordLines(await recordsFor(`Strip=${kinds}`)), recordLines(expected))
      const sliced = expected.map((record) => ({ ...record, captured: record.captured.subarray(0, 30) }))
      assert.deepEqual(recordLines(await recordsFor(`Strip=${kinds}&Slice=30`)), recordLines(sliced))
    })

  test('tshark decodes what is left', async () => {
    const path = join(appliance.folder, 'stripped.pcap')
    await writeFile(path, (await ask('Strip=all&FilterBPF=not arp and greater 20')).body)
    const chains = execFileSync('tshark', ['-r', path, '-T', 'fields', '-e', 'frame.protocols'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const layers = chains.split('\n').slice(0, 4)
    for (const chain of layers) assert.match(chain, /^eth:ethertype:ip:udp:dns/)
  })

  test('filters see the packets as captured', async () => {
    const timesOf = (records: readonly PcapRecord[]) =>
      records.map(({ ns }) => NAMES[Number((ns - START_NS) / 1_001n)])
    assert.deepEqual(timesOf(await recordsFor('Strip=all&FilterBPF=port 53')), ['plain'])
    assert.deepEqual(timesOf(await recordsFor('Strip=all&FilterBPF=vlan and port 4789')), ['vxlan'])
    assert.deepEqual(timesOf(await recordsFor('Strip=all&FilterBPF=port 53&FilterBPFDecap=true')), [
      'plain',
      'vlan',
      'mpls',
      'vxlan',
    ])
  })

  test('Dedup compares what is left; limits, After and microseconds apply to it', async () => {
    const left = strippedRecords('all')
    const payloads = new Set<string>()
    const unique = left.filter(({ captured }) => {
      const payload = captured.subarray(14).toString('hex')
      return payloads.size < payloads.add(payload).size
    })
    assert.equal(unique.length, left.length - 3)
    assert.deepEqual(recordLines(await recordsFor('Strip=all&Dedup=1000000')), recordLines(unique))
    assert.deepEqual(recordLines(await recordsFor('Strip=all&MaxPackets=2')), recordLines(left.slice(0, 2)))
    const whole = (await ask('Strip=all')).body
    assert.deepEqual((await ask('Strip=all&After=200')).body, whole.subarray(200))
    const micros = left.map((record) => ({ ...record, ns: record.ns - (record.ns % 1_000n) }))
    assert.deepEqual(recordLines(await recordsFor('Strip=all&TSResolution=usec')), recordLines(micros))
  })

  test('a TSMode reads the time from the packet as captured', async () => {
    const vendorNs = START_NS + 777_000_000n
    const header = bytes('d2 8b 00 01 00 10 00 00 00 00 00 00 00 00 81 00 00 05 08 00')
    header.writeUInt32BE(Number(vendorNs / 1_000_000_000n), 6)
    header.writeUInt32BE(Number(vendorNs % 1_000_000_000n), 10)
    const captured = Buffer.concat([ethernet(1, '').subarray(0, 12), header, INNER])
    await store('timed', [{ ns: START_NS, originalLength: captured.length, captured }])
    const { records } = readPcap((await ask('Strip=all&TSMode=vendorA7280_eth64', 'timed')).body)
    assert.deepEqual(
      recordLines(records),
      recordLines([{ ns: vendorNs, originalLength: PACKETS.plain.length, captured: PACKETS.plain }]),
    )
  })

  test('the file does not state the length of a frame check sequence that stands for other bytes', async () => {
    const withFcs = 0x24000001
    await store('fcs', STORED, withFcs)
    assert.equal(readPcap((await ask('', 'fcs')).body).linkType, withFcs)
    assert.equal(readPcap((await ask('Strip=vlan', 'fcs')).body).linkType, 1)
  })

  test('an unknown kind, and a link type without such headers, are refused', async () => {
    await store('wlan', STORED, 105)
    for (const [capture, kinds, words] of [
      ['made', 'vlan,qinq', /Strip must be a list of vlan, mpls, tunnels, all, separated by commas/],
      ['wlan', 'all', /Strip finds no headers in packets of link type 105/],
    ] as const) {
      const { status, body } = await appliance.get(`${SINGLE}?StreamName=${capture}&Strip=${kinds}`)
      assert.equal(status, 400)
      assert.match(body.toString(), words)
    }
    const estimate = await appliance.get(`/api/v1/pcap/estimate?StreamName=made&Strip=vlan`)
    assert.equal(estimate.json().Exact, false)
  })
})
