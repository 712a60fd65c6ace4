/** Dedup and DedupBy of one device: the packets that editcap keeps, and those that the rules keep, written out here. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { makePcap } from '../../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const START_NS = 1_793_610_000_000_000_000n
const ETHERNET_BYTES = 14
const SINGLE = '/api/v1/pcap/single'
const random = seededRandom()

/** An Ethernet frame with an IPv4 packet; `content` identifies it. */
function ipv4Packet(ns: bigint, content: number): PcapRecord {
  const captured = Buffer.alloc(64)
  captured.write('to-host', 0)
  captured.writeUInt16BE(0x0800, 12)
  captured[14] = 0x45
  captured.writeUInt16BE(46, 16)
  captured[22] = 64
  captured[23] = 17
  captured.writeUInt16BE(0xabcd, 24)
  captured.writeUInt32BE(content, 40)
  return { ns, originalLength: 90, captured }
}

/** The packet as it is behind routers: other addresses of Ethernet, a smaller TTL, another checksum. */
function routed({ captured, originalLength }: PcapRecord, ns: bigint): PcapRecord {
  const copy = Buffer.from(captured)
  copy.write('another', 0)
  copy[22] = 61
  copy.writeUInt16BE(0x1234, 24)
  return { ns, originalLength, captured: copy }
}

const payloadOf = ({ captured }: PcapRecord): string => captured.subarray(ETHERNET_BYTES).toString('hex')

function ipOf({ captured }: PcapRecord): string {
  const packet = Buffer.from(captured.subarray(ETHERNET_BYTES, ETHERNET_BYTES + 46))
  packet[8] = 0
  packet.writeUInt16BE(0, 10)
  return packet.toString('hex')
}

/** The rules: a packet is dropped if it equals one that was kept at most `windowNs` before. */
function kept(
  records: readonly PcapRecord[],
  windowNs: bigint,
  keyOf: (record: PcapRecord) => string,
): PcapRecord[] {
  const lastKept = new Map<string, bigint>()
  return records.filter((record) => {
    const key = keyOf(record)
    const before = lastKept.get(key)
    if (before !== undefined && record.ns - before <= windowNs) return false
    lastKept.set(key, record.ns)
    return true
  })
}

describe(`packets that a SPAN port delivered twice (SEED=${random.seed})`, () => {
  let appliance: TempAppliance
  const records: PcapRecord[] = []
  const url = (query: string) => `${SINGLE}?StreamName=span&${query}`
  const ask = async (query: string) => {
    const answer = await appliance.get(url(query))
    assert.equal(answer.status, 200, answer.body.toString('utf8', 0, 400))
    return answer
  }
  const linesOf = async (query: string) => recordLines(readPcap((await ask(query)).body).records)

  before(async () => {
    appliance = await startTempAppliance()
    let ns = START_NS
    for (let index = 0; index < 20_000; index++) {
      ns += BigInt(random.integer(0, 4_000))
      const before = records[records.length - random.integer(1, 12)]
      const isCopy = before !== undefined && random.integer(0, 2) === 0
      if (!isCopy) records.push(ipv4Packet(ns, index))
      else records.push(random.integer(0, 1) === 0 ? { ...before, ns } : routed(before, ns))
    }
    const path = join(appliance.folder, 'span.pcap')
    await writeFile(path, makePcap(records))
    await appliance.importFiles('span', path)
  })
  after(() => appliance[Symbol.asyncDispose]())

  test('Dedup keeps what the rules keep, and counts the rest', async () => {
    for (const windowNs of [1n, 3_000n, 10_000n, 10_000_000_000n]) {
      const expected = kept(records, windowNs, payloadOf)
      const answer = await ask(`Dedup=${windowNs}`)
      assert.deepEqual(recordLines(readPcap(answer.body).records), recordLines(expected))
      assert.equal(answer.trailers['capfleet-duplicates'], String(records.length - expected.length))
      assert.equal(answer.trailers['capfleet-packets'], String(expected.length))
    }
    assert.ok(kept(records, 10_000n, payloadOf).length < records.length - 500)
    assert.equal((await ask('')).trailers['capfleet-duplicates'], undefined)
  })

  test('DedupBy=ip also finds copies behind routers', async () => {
    const expected = kept(records, 10_000n, ipOf)
    assert.deepEqual(await linesOf('Dedup=10000&DedupBy=ip'), recordLines(expected))
    assert.ok(expected.length < kept(records, 10_000n, payloadOf).length - 500)
  })

  test('limits, slices, microseconds, compression and After apply to what is left', async () => {
    const left = kept(records, 10_000n, payloadOf)
    const limited = await ask('Dedup=10000&MaxPackets=777')
    assert.deepEqual(recordLines(readPcap(limited.body).records), recordLines(left.slice(0, 777)))
    const next = left[777] as PcapRecord
    assert.equal(limited.trailers['capfleet-next-ns'], String(next.ns))
    assert.equal(limited.trailers['capfleet-duplicates'], String(records.indexOf(next) - 777))

    const micros = left.map((record) => ({ ...record, ns: record.ns - (record.ns % 1_000n) }))
    assert.deepEqual(await linesOf('Dedup=10000&TSResolution=usec'), recordLines(micros))
    const sliced = kept(
      records.map((record) => ({ ...record, captured: record.captured.subarray(0, 50) })),
      10_000n,
      payloadOf,
    )
    assert.deepEqual(await linesOf('Dedup=10000&Slice=50'), recordLines(sliced))
    const whole = (await ask('Dedup=10000')).body
    assert.deepEqual(gunzipSync((await ask('Dedup=10000&Compression=fast')).body), whole)
    assert.deepEqual((await ask('Dedup=10000&After=123456')).body, whole.subarray(123_456))
    const middle = records[9_000] as PcapRecord
    const end = START_NS * 2n
    const part = records.filter(({ ns }) => ns >= middle.ns)
    const answer = await appliance.get(
      `/api/v1/pcap/splittime?StreamName=span&Start=${middle.ns}&Stop=${end}&Dedup=10000&FilterBPF=udp`,
    )
    assert.deepEqual(recordLines(readPcap(answer.body).records), recordLines(kept(part, 10_000n, payloadOf)))
  })

  test('estimates are upper limits, and what cannot be done is refused', async () => {
    const range = `TSBegin=${START_NS}&TSEnd=${START_NS + 10_000_000_000n}&TSUnit=nanos`
    const exact = async (more: string) =>
      (await appliance.get(`/api/v1/pcap/estimate?${range}${more}`)).json().Exact
    assert.deepEqual([await exact(''), await exact('&Dedup=5')], [true, false])
    for (const [more, param] of [
      ['&Dedup=5&Follow=1', 'Dedup'],
      ['&DedupBy=ip', 'DedupBy'],
      ['&Dedup=5&DedupBy=mac', 'DedupBy'],
      ['&Dedup=0', 'Dedup'],
    ] as const) {
      const answer = await appliance.get(`/api/v1/pcap/timerange?${range}${more}`)
      assert.deepEqual([answer.status, answer.json().param], [400, param], more)
    }
  })
})

// editcap compares with all packets before, also with those that it drops: no copy here has another one within its
// window but not within that of the first packet.
test('Dedup keeps what editcap -w keeps, and with editcap -I what differs in Ethernet addresses', async () => {
  await using appliance = await startTempAppliance()
  const records: PcapRecord[] = []
  for (let index = 0; index < 2_000; index++) {
    const ns = START_NS + BigInt(index) * 1_000_000n
    const packet = ipv4Packet(ns, index % 3)
    records.push(packet)
    if (random.integer(0, 1) === 0)
      records.push({ ...packet, ns: ns + BigInt(random.integer(0, 14)) * 1_000n })
    if (random.integer(0, 3) === 0) {
      const captured = Buffer.from(packet.captured)
      captured.write('another', 0)
      records.push({ ...packet, captured, ns: ns + 500_000n })
      records.push({ ...packet, captured, ns: ns + 500_500n })
    }
  }
  const path = join(appliance.folder, 'span.pcap')
  await writeFile(path, makePcap(records))
  await appliance.importFiles('span', path)
  for (const [windowNs, seconds, more] of [
    [7_000n, '0.000007', []],
    [10_000n, '0.00001', ['-I', String(ETHERNET_BYTES)]],
    [600_000n, '0.0006', ['-I', String(ETHERNET_BYTES)]],
  ] as const) {
    const target = join(appliance.folder, `editcap-${windowNs}.pcap`)
    execFileSync('editcap', ['-F', 'nsecpcap', ...more, '-w', seconds, path, target], { stdio: 'ignore' })
    const byEditcap = readPcap(execFileSync('cat', [target])).records
    const answer = await appliance.get(`${SINGLE}?StreamName=span&Dedup=${windowNs}`)
    assert.deepEqual(recordLines(readPcap(answer.body).records), recordLines(byEditcap), seconds)
    assert.ok(byEditcap.length < records.length)
  }
})
