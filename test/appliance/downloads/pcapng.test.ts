/** Format=pcapng of one device: Wireshark's programs and tcpdump read it, and find the packets of the PCAP in it. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { after, before, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { NO_TOTALS } from '../../../appliance/downloads/followed-totals.ts'
import { PcapngBody } from '../../../appliance/downloads/pcapng-body.ts'
import { productVersion } from '../../../src/shared/base/product-version.ts'
import { PCAP_HEADER_BYTES } from '../../../src/shared/pcap/pcap-sizes.ts'
import { parseDownloadQuery } from '../../../src/shared/query/download/parse-download-query.ts'
import { parseQueryString } from '../../../src/shared/query/parse-query-string.ts'
import { STORABLE_FILES } from '../../support/packets/capture-files.ts'
import { FILE, runOn, tryOn } from '../../support/packets/file-programs.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { makePcapng } from '../../support/packets/pcapng-maker.ts'
import { pcapngBlocks, readPcapng } from '../../support/packets/pcapng-reader.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const START_NS = 1_790_000_000_000_000_000n
const HOUR_NS = 3_600_000_000_000n
const PORTS = 3
const SINGLE = '/api/v1/pcap/single'
const PCAPNG = 'application/x-pcapng'
const random = seededRandom()
let appliance: TempAppliance

/** Runs a program on the file; fails the test if it reports anything. */
function programOn(bytes: Uint8Array, ...words: readonly [string, ...string[]]): string {
  return runOn(appliance.folder, bytes, words).toString('latin1')
}

async function get(path: string): Promise<Buffer> {
  const answer = await appliance.get(path)
  assert.equal(answer.status, 200, answer.body.toString('utf8', 0, 400))
  return answer.body
}

const pcapng = (path: string) => get(`${path}&Format=pcapng`)

before(async () => {
  appliance = await startTempAppliance({ segmentBytes: 500_000, config: { deviceName: 'nyc1' } })
  let ns = START_NS
  const records = Array.from({ length: 6_000 }, (_, index) => {
    ns += BigInt(random.integer(1, 2_000))
    return { ...makePacket(ns, `packet ${index}`, random.integer(20, 700)), port: index % PORTS }
  })
  const save = async (name: string, bytes: Uint8Array) => {
    const path = join(appliance.folder, name)
    await writeFile(path, bytes)
    return path
  }
  await appliance.importFiles('three', await save('three.pcapng', makePcapng(PORTS, records)))
  await appliance.importFiles('small', await save('small.pcap', makePcap(records.slice(0, 3))))
  const raw = records.slice(0, 10).map((record) => ({ ...record, port: 0 }))
  await appliance.importFiles('raw', await save('raw.pcapng', makePcapng(1, raw, 101)))
  const later = records.slice(0, 5).map(({ ns, ...record }) => ({ ns: ns + HOUR_NS, ...record }))
  await appliance.importFiles('later', await save('later.pcap', makePcap(later)))
})
after(() => appliance[Symbol.asyncDispose]())

test(`the packets, times and lengths are those of the PCAP, whatever is asked (SEED=${random.seed})`, async () => {
  const range = `/api/v1/pcap/timerange?TSBegin=${START_NS + 100_000n}&TSEnd=${START_NS + 3_000_000n}&FilterBPF=ether`
  const split = `/api/v1/pcap/splittime?StreamName=three&Start=${START_NS + 100_000n}&Stop=${START_NS + 900_000n}`
  const single = `${SINGLE}?StreamName=three`
  for (const query of [
    single,
    split,
    `${range}[0] %26 1 = 0`,
    `/pcap/single?StreamName=three`,
    `${single}&Slice=33`,
    `${single}&Strip=vlan`,
    `${single}&Dedup=1000`,
    `${single}&FilterPort=1`,
    `${single}&MaxPackets=1234`,
    `${single}&TSResolution=usec`,
    `${single}&TSMode=vendorA7130`,
  ]) {
    const asked = query.replaceAll(' ', '%20')
    const { packets, delivered, lastComment } = readPcapng(await pcapng(asked))
    const { records } = readPcap(await get(asked))
    assert.ok(records.length > 0, query)
    assert.deepEqual(recordLines(packets), recordLines(records), query)
    assert.equal(
      delivered.reduce((sum, count) => sum + count, 0n),
      BigInt(records.length),
    )
    assert.match(lastComment ?? '', new RegExp(`^capfleet end: ${records.length} packets, `))
  }
})

test('each packet has the interface of its capture port', async () => {
  const body = await pcapng(`${SINGLE}?StreamName=three`)
  const fields = ['-T', 'fields', '-e', 'frame.interface_name', '-e', 'data']
  const shown = programOn(body, 'tshark', '-r', FILE, ...fields)
  const names = shown.trimEnd().split('\n')
  assert.equal(names.length, 6_000)
  names.forEach((line, index) => {
    assert.equal(line.split('\t')[0], `nyc1:cap${index % PORTS}`)
  })
  const { interfaces, delivered } = readPcapng(body)
  assert.deepEqual(
    interfaces.map(({ name, linkType, snaplen }) => [name, linkType, snaplen]),
    Array.from({ length: PORTS }, (_, port) => [`nyc1:cap${port}`, 1, 262_144]),
  )
  assert.deepEqual(delivered, [2_000n, 2_000n, 2_000n])
})

test('the section says what was asked, of which device, and with what program', async () => {
  const body = await pcapng(`${SINGLE}?StreamName=three&FilterBPF=len%20%3E%20100`)
  const shown = programOn(body, 'capinfos', FILE)
  assert.match(shown, /File type: +Wireshark\/\.\.\. - pcapng/)
  assert.match(shown, /Capture hardware: +nyc1 \(capfleet\b/)
  assert.match(shown, /Capture oper-sys: +Linux$/m)
  assert.match(shown, /Capture application: +capfleet \d+\.\d+\.\d+/)
  assert.match(shown, /Capture comment: +capfleet single: StreamName=three FilterBPF=len > 100/)
  assert.match(shown, /Name = nyc1:cap0\n.*Description = capture three\n/)
  assert.match(shown, /Filter string = len > 100/)
  assert.match(shown, /Time precision = nanoseconds \(9\)/)
})

test('the programs of Wireshark, and tcpdump, read it without a word', async () => {
  for (const query of [
    '?StreamName=three',
    '?StreamName=small&Slice=10',
    '?StreamName=small&FilterBPF=vlan%204000',
  ]) {
    const body = await pcapng(`${SINGLE}${query}`)
    const pcap = await get(`${SINGLE}${query}`)
    programOn(body, 'capinfos', FILE)
    const lines = programOn(body, 'tcpdump', '-tt', '--nano', '-nr', FILE)
    assert.equal(lines, programOn(pcap, 'tcpdump', '-tt', '--nano', '-nr', FILE))
    programOn(body, 'tshark', '-r', FILE)
    programOn(body, 'mergecap', '-w', '-', FILE)
    const records = programOn(body, 'editcap', '-F', 'nsecpcap', FILE, '-').slice(PCAP_HEADER_BYTES)
    assert.equal(records, pcap.toString('latin1', PCAP_HEADER_BYTES), 'editcap does not copy the snaplen')
  }
})

for (const path of STORABLE_FILES) {
  test(`editcap makes the PCAP of it: ${basename(path)}`, async () => {
    const capture = basename(path).replace(/\W/g, '_')
    await appliance.importFiles(capture, path)
    const pcap = await appliance.get(`${SINGLE}?StreamName=${capture}`)
    const body = await pcapng(`${SINGLE}?StreamName=${capture}`)
    programOn(body, 'capinfos', FILE)
    // One of several link types has no PCAP.
    if (pcap.status === 409) return
    const made = tryOn(appliance.folder, body, ['editcap', '-F', 'nsecpcap', FILE, '-'])
    assert.equal(made.stdout.toString('latin1'), pcap.body.toString('latin1'), made.stderr)
  })
}

test('link types may differ, unless a parameter is for one', async () => {
  const range = `/api/v1/pcap/timerange?TSBegin=${START_NS}&TSEnd=${START_NS + 1_000_000n}`
  const refused = await appliance.get(range)
  assert.deepEqual([refused.status, refused.json().code], [409, 'mixed-link-type'])
  assert.match(refused.json().detail as string, /ask for Format=pcapng/)
  const { interfaces, packets } = readPcapng(await pcapng(range))
  assert.deepEqual(new Set(interfaces.map(({ linkType }) => linkType)), new Set([1, 101]))
  const raw = readPcap(await get(`${SINGLE}?StreamName=raw`)).records
  const ofRaw = packets.filter(({ port }) => interfaces[port]?.linkType === 101)
  assert.deepEqual(recordLines(ofRaw), recordLines(raw.filter(({ ns }) => ns < START_NS + 1_000_000n)))
  const filtered = await appliance.get(`${range}&Format=pcapng&FilterBPF=ip`)
  assert.deepEqual([filtered.status, filtered.json().code], [409, 'mixed-link-type'])
  assert.match(filtered.json().detail as string, /; FilterBPF /)
  const kept = readPcapng(await pcapng(`${range}&Dedup=1`))
  assert.deepEqual(
    new Set(kept.packets.map(({ port }) => kept.interfaces[port]?.linkType)),
    new Set([1, 101]),
  )
})

test('the first packet after a gap says so, and the end if there is none', async () => {
  const range = `/api/v1/pcap/timerange?TSBegin=${START_NS + HOUR_NS / 2n}&TSEnd=${START_NS + 2n * HOUR_NS}`
  const { packets } = readPcapng(await pcapng(range))
  const gap =
    /^capfleet gap: nothing was recorded from 2026-09-21T14:43:20\.000000000Z to 2026-09-21T15:13:20\.0\d+Z$/
  assert.equal(packets.length, 5)
  assert.match(packets[0]?.comments.join() ?? '', gap)
  assert.deepEqual(
    packets.slice(1).map(({ comments }) => comments),
    [[], [], [], []],
  )
  const shown = programOn(await pcapng(range), 'tshark', '-r', FILE, '-T', 'fields', '-e', 'frame.comment')
  assert.match(shown.split('\n')[0] ?? '', gap)
  const none = readPcapng(await pcapng(`${range}&FilterBPF=vlan%204000`))
  assert.equal(none.endComments[0], 'capfleet end: 0 packets, complete')
  assert.match(none.endComments[1] ?? '', gap)
})

test('the head and the end say what is missing, but not which filter is forced', () => {
  const query = parseDownloadQuery('single', parseQueryString('StreamName=a&Format=pcapng&FilterBPF=ip'), {
    zone: 'UTC',
    nowNs: START_NS,
  })
  const device = { deviceName: 'nyc1', model: 'capfleet', serial: '7' }
  const selection = { streams: [], linkType: 113, linkTypes: [113], captures: ['a'] }
  const lost = {
    gaps: [],
    interruptions: [{ beginNs: START_NS, endNs: START_NS + HOUR_NS }],
    drops: [{ captureName: 'a', ring: 7n, disk: 5n }],
    damaged: [{ port: 3, beginNs: START_NS, endNs: START_NS + 1n }],
  }
  for (const isForced of [false, true]) {
    const body = new PcapngBody({ device, query, isForced })
    const { head, otherBytes } = body.partsFor({ selection, agedOutBeforeNs: 17n, lost })
    const closing = body.closing({ ...NO_TOTALS, packets: 2n, corruptBlocks: 3n })
    const { section, interfaces, endComments } = readPcapng(Buffer.concat([head, closing]))
    assert.ok(head.length + closing.length <= otherBytes)
    assert.ok(head.length + closing.length > otherBytes - 150)
    const limited = body.closing({ ...NO_TOTALS, corruptBlocks: 3n, truncated: true, nextNs: 5n })
    assert.equal(
      readPcapng(Buffer.concat([head, limited])).lastComment,
      'capfleet end: 0 packets, ended by MaxPackets or MaxBytes; the next packet is from 5 ns; 3 damaged blocks are missing',
    )
    assert.deepEqual(interfaces, [{ linkType: 113, snaplen: 262_144, name: 'nyc1:capture' }])
    assert.equal(section.get(2), 'nyc1 (capfleet, serial 7)')
    // Nothing of them changes its length with an upgrade.
    assert.deepEqual([section.get(3), section.get(4)], ['Linux', `capfleet ${productVersion()}`.padEnd(32)])
    assert.equal(
      section.get(1),
      isForced
        ? "capfleet single: StreamName=a, with the filter of the caller's account\npackets before 17 ns have aged out"
        : 'capfleet single: StreamName=a FilterBPF=ip\npackets before 17 ns have aged out',
    )
    assert.deepEqual(endComments, [
      'capfleet end: 2 packets, incomplete; 3 damaged blocks are missing',
      'capfleet gap: nothing was recorded from 2026-09-21T14:13:20.000000000Z to 2026-09-21T15:13:20.000000000Z',
      'capfleet damage: some packets of cap3 between 2026-09-21T14:13:20.000000000Z and 2026-09-21T14:13:20.000000001Z are lost, because blocks are damaged',
      "capfleet drops: capture a could not store 12 packets: 7 in the kernel's ring, 5 because of the disk",
    ])
  }
})

test('a forced filter hides when ports had packets, and when packets were lost', async () => {
  const ask = async (endNs: bigint) => {
    const range = `/api/v1/pcap/timerange?TSBegin=${START_NS - 1n}&TSEnd=${endNs}&TSUnit=nsec`
    const answer = await appliance.get(`${range}&FilterRE=zzqqzz&Format=pcapng`, {
      headers: { 'capfleet-forced-filter': 'true' },
    })
    assert.equal(answer.status, 200, answer.body.toString())
    const { interfaces, packets } = readPcapng(answer.body)
    assert.equal(packets.length, 0)
    return interfaces
  }
  const early = await ask(START_NS)
  assert.ok(early.length > PORTS)
  assert.deepEqual(await ask(START_NS + 1_000_000n), early)
  assert.deepEqual(await ask(START_NS + 5n * HOUR_NS), early)
})

test('an estimate is a bound of the file, also with many ports and a long filter', async () => {
  const path = join(appliance.folder, 'many.pcapng')
  const records = Array.from({ length: 100 }, (_, port) => ({
    ...makePacket(START_NS + BigInt(port), `port ${port}`, 61),
    port,
  }))
  await writeFile(path, makePcapng(100, records))
  await appliance.importFiles('many', path)
  const filter = `FilterBPF=${Array.from({ length: 110 }, () => 'len>3').join('%20or%20')}`
  for (const [query, packets] of [
    ['StreamName=three', 6_000],
    [`StreamName=many&${filter}`, 100],
  ] as const) {
    const { Bytes, Exact, Packets } = (
      await appliance.get(`/api/v1/pcap/estimate?${query}&Format=pcapng`)
    ).json()
    const body = await pcapng(`${SINGLE}?${query}`)
    assert.deepEqual([Exact, Packets], [false, String(packets)])
    assert.equal(readPcapng(body).packets.length, packets)
    const most = body.length + packets * 20 + 200
    assert.ok(Number(Bytes) >= body.length && Number(Bytes) < most, `${Bytes}, ${body.length}`)
  }
  const counted = await appliance.get(`/api/v1/pcap/count?StreamName=three&Format=pcapng`)
  assert.equal(counted.status, 400)
})

test('a file without packets has an interface and an end', async () => {
  const body = await pcapng(`${SINGLE}?StreamName=three&FilterBPF=vlan%204000`)
  const { interfaces, packets, lastComment } = readPcapng(body)
  assert.deepEqual([interfaces.length, packets.length], [PORTS, 0])
  assert.equal(lastComment, 'capfleet end: 0 packets, complete')
  const nothing = readPcapng(await pcapng('/api/v1/pcap/timerange?TSBegin=5&TSEnd=6&TSUnit=sec'))
  assert.deepEqual(
    nothing.interfaces.map(({ name }) => name),
    ['nyc1:capture'],
  )
  assert.equal(nothing.lastComment, 'capfleet end: 0 packets, complete')
})

test('the end says that a limit ended it, and MaxBytes includes everything', async () => {
  const limited = await appliance.get(`${SINGLE}?StreamName=three&Format=pcapng&MaxPackets=10`)
  assert.equal(
    readPcapng(limited.body).lastComment,
    `capfleet end: 10 packets, ended by MaxPackets or MaxBytes; the next packet is from ${limited.trailers['capfleet-next-ns']} ns`,
  )
  for (const most of [2_000, 3_000, 10_001, 100_000]) {
    const body = await pcapng(`${SINGLE}?StreamName=three&MaxBytes=${most}`)
    // The next packet has at most 762 bytes, and the numbers of the end may be shorter than what is reserved.
    assert.ok(body.length <= most && body.length > most - 900, `${body.length} of ${most}`)
    assert.match(readPcapng(body).lastComment ?? '', /ended by MaxPackets or MaxBytes/)
  }
})

test('a MaxBytes without room for head and end is refused, with the size that they need', async () => {
  const path = `${SINGLE}?StreamName=three&Format=pcapng&MaxBytes=`
  const refused = await appliance.get(`${path}24`)
  const { code, detail } = refused.json() as { code: string; detail: string }
  assert.deepEqual([refused.status, code], [400, 'bad-parameter'])
  const least = Number(/^MaxBytes must be at least (\d+) /.exec(detail)?.[1])
  assert.equal((await appliance.get(`${path}${least - 1}`)).status, 400)
  assert.equal((await appliance.get(`${path}${least - 1}`, { method: 'HEAD' })).status, 400)
  const estimate = `/api/v1/pcap/estimate?StreamName=three&Format=pcapng&MaxBytes=`
  assert.equal((await appliance.get(`${estimate}${least - 1}`)).status, 400)
  const { body, trailers } = await appliance.get(`${path}${least}`)
  assert.equal(trailers['capfleet-truncated'], '1')
  assert.ok(body.length <= least && body.length > least - 150, `${body.length} of ${least}`)
  assert.match(
    readPcapng(body).lastComment ?? '',
    /^capfleet end: 0 packets, ended by MaxPackets or MaxBytes/,
  )
  assert.equal((await appliance.get(`${SINGLE}?StreamName=three&MaxBytes=24`)).status, 200)
})

test('the head names the file and its type, compressed or not', async () => {
  for (const [compression, ending, type] of [
    ['none', '.pcapng', PCAPNG],
    ['fast', '.pcapng.gz', 'application/gzip'],
    ['zstd', '.pcapng.zst', 'application/zstd'],
  ]) {
    const path = `${SINGLE}?StreamName=three&Format=pcapng&Compression=${compression}`
    for (const method of ['GET', 'HEAD']) {
      const { headers } = await appliance.get(path, { method })
      assert.equal(headers['content-type'], type)
      assert.equal(headers['content-disposition'], `attachment; filename="three${ending}"`)
    }
  }
  const plain = await pcapng(`${SINGLE}?StreamName=three`)
  assert.ok(gunzipSync(await pcapng(`${SINGLE}?StreamName=three&Compression=fast`)).equals(plain))
  const zstd = await appliance.get(`${SINGLE}?StreamName=three&Format=pcapng&Compression=zstd`)
  assert.ok(tryOn(appliance.folder, zstd.body, ['zstd', '-dcq', FILE]).stdout.equals(plain))
  assert.equal(zstd.trailers['capfleet-bytes'], String(zstd.body.length))
  assert.equal(zstd.trailers['capfleet-complete'], '1')
})

test('wherever a file is cut, programs report it or the end is missing', async () => {
  const body = await pcapng(`${SINGLE}?StreamName=small&Slice=17`)
  const ends = new Set(pcapngBlocks(body).map(({ end }) => end))
  assert.match(readPcapng(body).lastComment ?? '', /^capfleet end: 3 packets, complete$/)
  const isLong = process.env.CAPFLEET_LONG === '1'
  const step = isLong ? 1 : 7
  for (let bytes = 1; bytes < body.length; bytes++) {
    const cut = body.subarray(0, bytes)
    if (ends.has(bytes)) {
      assert.equal(readPcapng(cut).lastComment, undefined)
      continue
    }
    if (bytes % step !== 0) continue
    const { status, stdout, stderr } = tryOn(appliance.folder, cut, ['capinfos', '-t', '-c', FILE])
    // Of the first bytes alone it does not see which format they are.
    const isKnown = stdout.includes('pcapng')
    assert.ok(!isKnown || status !== 0 || stderr !== '', `${bytes} of ${body.length} bytes`)
    if (!isLong || !isKnown) continue
    const read = tryOn(appliance.folder, cut, ['tshark', '-r', FILE])
    assert.ok(read.status !== 0 && read.stderr !== '', `tshark of ${bytes} of ${body.length} bytes`)
  }
})

test('another format is refused by name', async () => {
  const answer = await appliance.get(`${SINGLE}?StreamName=three&Format=erf`)
  assert.equal(answer.status, 400)
  assert.match(answer.json().detail as string, /^Format must be one of pcap, pcapng/)
})
