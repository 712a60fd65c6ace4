// Format=pcapng of several devices: one file that says of each packet which device and port it is from.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { type HttpAnswer, httpGet } from '../../../support/http-get.ts'
import { FILE, runOn } from '../../../support/packets/file-programs.ts'
import { makePacket, makePcap } from '../../../support/packets/packet-maker.ts'
import { readPcap } from '../../../support/packets/pcap-records.ts'
import { makePcapng } from '../../../support/packets/pcapng-maker.ts'
import { type PcapngContent, readPcapng } from '../../../support/packets/pcapng-reader.ts'
import {
  type SmallFleet,
  SMALL_FLEET_START_NS as START_NS,
  startSmallFleet,
} from '../../../support/processes/small-fleet.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

const PORTS = 2
const PACKETS = 400
const STEP_NS = 1_000_000n
const RANGE = `TSBegin=${START_NS}&TSEnd=${START_NS + 4_000n * STEP_NS}`
const TIMERANGE = `/api/v1/pcap/timerange?${RANGE}`
const random = seededRandom()
let fleet: SmallFleet

before(async () => {
  fleet = await startSmallFleet([{ name: 'bound', role: 'user', filter: 'greater 200' }], (name) =>
    name.endsWith('second') ? undefined : twoPorts(name),
  )
})
after(() => fleet[Symbol.asyncDispose]())

/** Both devices have packets of equal times, and one of them the same packets at both ports. */
function twoPorts(name: string): Buffer {
  const records = Array.from({ length: PACKETS }, (_, index) => ({
    ...makePacket(
      START_NS + BigInt(index) * STEP_NS,
      index % 10 < 2 ? `copy ${index - (index % 2)}` : `${name} ${index}`,
      random.integer(40, 300),
    ),
    port: index % PORTS,
  }))
  return makePcapng(PORTS, records)
}

const ask = (path: string, as = fleet.gateway.as.full): Promise<HttpAnswer> =>
  httpGet(fleet.gateway.url + path, { headers: as })

async function get(path: string): Promise<Buffer> {
  const answer = await ask(path)
  assert.equal(answer.status, 200, answer.body.toString('utf8', 0, 400))
  return answer.body
}

/** Runs a program on the file; fails the test if it reports anything. */
function programOn(bytes: Uint8Array, ...words: readonly [string, ...string[]]): Buffer {
  return runOn(fleet.appliances[0]?.folder ?? '', bytes, words)
}

const asPcap = (pcapng: Uint8Array) => programOn(pcapng, 'editcap', '-F', 'nsecpcap', FILE, '-')

function namesOf({ packets, interfaces }: PcapngContent): (string | undefined)[] {
  return packets.map(({ port }) => interfaces[port]?.name)
}

describe('a merge in pcapng', () => {
  test('has the packets of the merge in PCAP, whatever is asked', async () => {
    for (const query of [
      '',
      '&FilterBPF=greater+200',
      '&Slice=60',
      '&MaxPackets=123',
      '&Dedup=5',
      '&TSMax=300000000',
      '&TSResolution=usec',
      '&Compression=fast',
      '&Compression=zstd',
      '&Dedup=5&MaxPackets=70&Slice=50',
      `&Align=true`,
    ]) {
      const [pcap, pcapng] = await Promise.all([
        get(TIMERANGE + query),
        get(`${TIMERANGE}${query}&Format=pcapng`),
      ])
      const plain = (bytes: Buffer) =>
        query.includes('fast')
          ? gunzipSync(bytes)
          : query.includes('zstd')
            ? zstdDecompressSync(bytes)
            : bytes
      const file = readPcapng(plain(pcapng))
      assert.deepEqual(
        file.packets.map(({ ns, originalLength, captured }) => ({ ns, originalLength, captured })),
        readPcap(plain(pcap)).records.map(({ ns, originalLength, captured }) => ({
          ns,
          originalLength,
          captured,
        })),
        query,
      )
      // editcap writes neither microseconds here nor the snaplen of the interfaces.
      if (!query.includes('usec') && !query.includes('Slice'))
        assert.ok(asPcap(plain(pcapng)).equals(plain(pcap)), query)
      assert.match(String(file.lastComment), new RegExp(`^capfleet end: ${file.packets.length} packets, `))
    }
  })

  test('names the device and port of every packet, as tshark reads it', async () => {
    const bytes = await get(`${TIMERANGE}&Format=pcapng`)
    const file = readPcapng(bytes)
    assert.deepEqual(file.interfaces.map(({ name }) => name).toSorted(), [
      'east:cap0',
      'east:cap1',
      'west:cap0',
      'west:cap1',
    ])
    const shown = programOn(bytes, 'tshark', '-r', FILE, '-T', 'fields', '-e', 'frame.interface_name')
    const names = shown.toString().trim().split('\n')
    assert.deepEqual(names, namesOf(file))
    // At equal times the device that is first in the fleet comes first, and its packets alternate between its ports.
    const expected = Array.from({ length: PACKETS }, (_, index) =>
      ['east', 'west'].map((device) => `${device}:cap${index % PORTS}`),
    )
    assert.deepEqual(names, expected.flat())
    assert.deepEqual(file.delivered, [200n, 200n, 200n, 200n])
    assert.match(file.section.get(1) ?? '', /^capfleet timerange: TSBegin=.*\ndevices: east, west$/)
    programOn(bytes, 'capinfos', FILE)
    programOn(bytes, 'tcpdump', '-r', FILE, '-w', '/dev/null')
  })

  test('says on a kept packet which copies were left out, as tshark reads it', async () => {
    const path = `${TIMERANGE}&Format=pcapng&Dedup=${10n ** 10n}`
    const bytes = await get(path)
    const words = ['-T', 'fields', '-e', 'frame.comment', '-Y', 'frame.comment contains "capfleet copies"']
    const shown = programOn(bytes, 'tshark', '-r', FILE, ...words)
    const told = new Map<string, number>()
    for (const [, count, name = ''] of shown.toString().matchAll(/(\d+) (\w+:cap\d)/g))
      told.set(name, (told.get(name) ?? 0) + Number(count))
    const all = namesOf(readPcapng(await get(`${TIMERANGE}&Format=pcapng`)))
    const kept = namesOf(readPcapng(bytes))
    const counted = new Map(
      [...new Set(all)].map((name) => {
        const ofPort = (names: typeof all) => names.filter((one) => one === name).length
        return [String(name), ofPort(all) - ofPort(kept)] as const
      }),
    )
    assert.ok(kept.length > 0 && kept.length < all.length, 'there are copies')
    assert.deepEqual(told, new Map([...counted].filter(([, copies]) => copies > 0)))
    assert.ok((await get(path)).equals(bytes), 'the same bytes each time')
  })

  test('a small MaxBytes is kept, and one without room for a packet is refused', async () => {
    const refused = await ask(`${TIMERANGE}&Format=pcapng&MaxBytes=100`)
    assert.deepEqual([refused.status, refused.json().param], [400, 'MaxBytes'])
    const least = Number(/at least (\d+)/.exec(String(refused.json().detail))?.[1])
    let before = 0
    for (const more of [0, 1, 50, 400, 2_000, 20_000]) {
      const bytes = await get(`${TIMERANGE}&Format=pcapng&MaxBytes=${least + more}`)
      assert.ok(bytes.length <= least + more, `${bytes.length} of ${least + more}`)
      const { packets, lastComment } = readPcapng(bytes)
      assert.ok(packets.length >= before)
      before = packets.length
      assert.match(String(lastComment), /ended by MaxPackets or MaxBytes; the next packet is from \d+ ns/)
    }
    assert.ok(before > 20)
  })

  test('continues after a device breaks off, byte for byte', async () => {
    const [line] = fleet.lines
    assert.ok(line)
    const whole = await get(`${TIMERANGE}&Format=pcapng`)
    for (const cutAfterBytes of [5_000, 20_011, 50_002]) {
      line.cutAfterBytes = cutAfterBytes
      const served = line.served
      const answer = ask(`${TIMERANGE}&Format=pcapng`)
      await line.untilServed(served + 2)
      line.cutAfterBytes = Number.POSITIVE_INFINITY
      assert.ok((await answer).body.equals(whole), String(cutAfterBytes))
    }
  })

  test('is no larger than its estimate, however small it is', async () => {
    for (const more of ['', '&MaxPackets=1', '&Dedup=5', '&Device=east', '&FilterBPF=greater+9000']) {
      const { body } = await ask(`/v1/estimate?${RANGE}&Format=pcapng${more}`)
      const { bytes, exact } = JSON.parse(body.toString()) as { bytes: string; exact: boolean }
      const file = await get(`${TIMERANGE}&Format=pcapng${more}`)
      assert.ok(file.length <= Number(bytes), `${file.length} of ${bytes}${more}`)
      assert.equal(exact, false)
    }
  })

  test('says which device is missing', async () => {
    const [line] = fleet.lines
    assert.ok(line)
    line.isDown = true
    try {
      const file = readPcapng(await get(`${TIMERANGE}&Format=pcapng&OnError=partial`))
      assert.deepEqual([...new Set(namesOf(file))], ['west:cap0', 'west:cap1'])
      assert.match(file.section.get(1) ?? '', /\nmissing: east$/)
      assert.match(
        String(file.lastComment),
        /^capfleet end: 400 packets, incomplete; without packets of east$/,
      )
      assert.match(
        String(file.endComments[1]),
        /^capfleet missing: packets of east from 2026-.* to 2026-.*: device east /,
      )
    } finally {
      line.isDown = false
    }
  })

  test('does not say the filter of an account', async () => {
    const path = `${TIMERANGE}&Format=pcapng&FilterBPF=greater+100`
    const { body } = await ask(path, fleet.gateway.basic('bound'))
    const file = readPcapng(body)
    const all = readPcap(await get(`${TIMERANGE}&FilterBPF=greater+200`)).records
    assert.deepEqual([file.packets.length > 0, file.packets.length], [true, all.length])
    assert.match(file.section.get(1) ?? '', /FilterBPF=greater 100, with the filter of the caller's account/)
    assert.ok(!body.includes('greater 200'))
  })
})

describe('a merge of several link types', () => {
  let mixed: SmallFleet
  const linkTypes = new Map([
    ['east-first', 1],
    ['west-first', 101],
    ['west-second', 113],
  ])
  before(async () => {
    mixed = await startSmallFleet([], (name) => {
      const linkType = linkTypes.get(name)
      if (linkType === undefined) return undefined
      const packets = Array.from({ length: 20 }, (_, index) =>
        makePacket(START_NS + BigInt(index) * STEP_NS, `${name} ${index}`, 80),
      )
      return makePcap(packets, { linkType })
    })
  })
  after(() => mixed[Symbol.asyncDispose]())

  test('is one file, in which each interface has its own', async () => {
    const headers = mixed.gateway.as.full
    const refused = await httpGet(mixed.gateway.url + TIMERANGE, { headers })
    assert.equal(refused.json().code, 'mixed-link-type')
    const { body } = await httpGet(`${mixed.gateway.url}${TIMERANGE}&Format=pcapng`, { headers })
    const { interfaces, packets } = readPcapng(body)
    // Captures of one device have no order at equal times.
    const found = packets.map(({ port, ns, captured }) => {
      const name = captured.toString('latin1').replaceAll('\0', '')
      return `${(ns - START_NS) / STEP_NS} ${interfaces[port]?.linkType} ${name}`
    })
    const expected = [...linkTypes].flatMap(([name, linkType]) =>
      Array.from({ length: 20 }, (_, index) => `${index} ${linkType} ${name} ${index}`),
    )
    assert.deepEqual(found.toSorted(), expected.toSorted())
    assert.deepEqual(
      packets.map(({ ns }) => ns),
      packets.map(({ ns }) => ns).toSorted((a, b) => Number(a - b)),
    )
  })
})
