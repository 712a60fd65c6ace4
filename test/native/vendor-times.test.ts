// Downloads with each TSMode against tshark's decoding or, where tshark has none, against a calculation here.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { Download } from '../../native/addon.ts'
import type { DownloadOptions, StreamFiles, TimeSource } from '../../native/download-options.ts'
import { importCaptureFiles } from '../../native/import-capture-files.ts'
import { capturesNamed } from '../support/packets/capture-files.ts'
import { streamsIn } from '../support/packets/import-streams.ts'
import { makePcap } from '../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap } from '../support/packets/pcap-records.ts'
import { compileFilter } from '../support/processes/compile-filter.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { tempFolder } from '../support/temp-folder.ts'

const SECOND_NS = 1_000_000_000n
const NOW_SECONDS = 1_700_000_000
const NOW_NS = BigInt(NOW_SECONDS) * SECOND_NS

/** Imports a file into a new folder beside it. */
async function importFile(file: string, directory: string): Promise<StreamFiles[]> {
  await mkdir(directory)
  const { streams } = await importCaptureFiles({ files: [file], directory })
  return streamsIn(directory, streams)
}

async function download(streams: readonly StreamFiles[], options: Partial<DownloadOptions>) {
  await using opened = await Download.open({
    streams,
    beginNs: 0n,
    endNs: 2n ** 63n - 1n,
    timeResolution: 'nsec',
    compression: 'none',
    ...options,
  })
  const pieces: Buffer[] = []
  for (let chunk = await opened.next(); chunk; chunk = await opened.next()) {
    pieces.push(Buffer.from(chunk.bytes))
    chunk.release()
  }
  return { records: readPcap(Buffer.concat(pieces)).records, totals: opened.totals() }
}

/** The values of `fields` for each packet; several values of one field are joined by commas. */
function tsharkFields(file: string, fields: readonly string[], options: readonly string[] = []): string[][] {
  const names = fields.flatMap((field) => ['-e', field])
  const output = execFileSync('tshark', ['-r', file, ...options, '-T', 'fields', ...names], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, TZ: 'UTC' },
  })
  return output
    .split('\n')
    .map((line) => line.split('\t'))
    .slice(0, -1)
}

/** "Nov 14, 2023 22:13:23.123456789 UTC" */
function tsharkTimeNs(text: string): bigint {
  const [, second = '', fraction = ''] = /^(.*)\.(\d{9}) UTC$/.exec(text) ?? []
  return BigInt(Date.parse(`${second} UTC`)) * 1_000_000n + BigInt(fraction)
}

/** "<captured bytes> <timestamp>", sorted: the order of packets does not matter. */
function stamps(
  records: readonly { readonly captured: Buffer; readonly ns: bigint | undefined }[],
): string[] {
  return records.map(({ captured, ns }) => `${captured.toString('hex')} ${ns}`).sort()
}

function expectedStamps(records: readonly PcapRecord[], times: readonly (bigint | undefined)[]): string[] {
  assert.equal(times.length, records.length)
  return stamps(records.map(({ captured, ns }, index) => ({ captured, ns: times[index] ?? ns })))
}

function countUndefined(times: readonly (bigint | undefined)[]): bigint {
  return BigInt(times.filter((time) => time === undefined).length)
}

/** The expected download with the time of `source`: `times` where they are defined, else NIC time. */
async function checkDownload(file: string, source: TimeSource, times: readonly (bigint | undefined)[]) {
  await using root = await tempFolder()
  const streams = await importFile(file, join(root.path, 'capture'))
  const { records } = await download(streams, {})
  const found = await download(streams, { timeSource: source })
  assert.deepEqual(stamps(found.records), expectedStamps(records, times))
  assert.equal(found.totals.vendorTimeFallbacks, countUndefined(times))
  assert.equal(found.totals.latePackets, countLate(found.records))
  return found.totals
}

/** Packets that come after one with a later time. */
function countLate(records: readonly PcapRecord[]): bigint {
  let latestNs = 0n
  let late = 0n
  for (const { ns } of records) {
    if (ns < latestNs) late++
    else latestNs = ns
  }
  return late
}

function withFcs(frame: Buffer): Buffer {
  const fcs = Buffer.alloc(4)
  fcs.writeUInt32LE(crc32(frame))
  return Buffer.concat([frame, fcs])
}

/** A UDP packet of 64 bytes with a mark, so that tshark treats what follows as a trailer. */
function udpFrame(mark: number): Buffer {
  const ethernet = '02aabbccddee00f2112233440800'
  const ip = '4500003200000000401100000a0000010a000002'
  const udp = '00010002001e0000'
  const data = Buffer.alloc(22)
  data.writeUInt32BE(mark)
  return Buffer.concat([Buffer.from(ethernet + ip + udp, 'hex'), data])
}

function a7130Trailer(timeNs: bigint, extensions: Buffer): Buffer {
  const fixed = Buffer.alloc(12)
  fixed.writeUInt32BE(Number(timeNs / SECOND_NS))
  fixed.writeUInt32BE(Number(timeNs % SECOND_NS), 4)
  fixed.writeUInt8(extensions.length > 0 ? 3 : 1, 8)
  fixed.writeUInt16BE(54931, 9)
  fixed.writeUInt8(10, 11)
  return Buffer.concat([extensions, fixed])
}

test('vendorA7130 is the time that tshark reads from the trailer', async (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  // None; a sequence number; two kinds; a string in the long form and another kind.
  const extensions = ['', '00123420', '12abcd2380000001', '12abcd2374657374746573740000005f']
  const records = Array.from({ length: 300 }, (_, mark): PcapRecord => {
    const nicNs = NOW_NS + BigInt(mark) * 1000n
    const timeNs = nicNs + BigInt(random.integer(-3_000_000, 3_000_000))
    const trailer = a7130Trailer(timeNs, Buffer.from(random.pick(extensions), 'hex'))
    const frame = mark % 10 === 0 ? udpFrame(mark) : Buffer.concat([withFcs(udpFrame(mark)), trailer])
    const captured = random.next() < 0.5 ? frame : withFcs(frame)
    return { ns: nicNs, originalLength: captured.length, captured }
  })
  await using root = await tempFolder()
  const file = join(root.path, 'made.pcap')
  await writeFile(file, makePcap(records))
  const read = tsharkFields(file, ['metamako.time'], ['--enable-heuristic', 'metamako_eth'])
  const times = read.map(([time = '']) => (time === '' ? undefined : tsharkTimeNs(time)))
  assert.equal(countUndefined(times), 30n)
  const { latePackets } = await checkDownload(file, 'vendorA7130', times)
  assert.equal(latePackets, 0n, 'times are within 3 ms of the NIC, the window is 10 ms wide')
})

test('vendorB3550 is the time that tshark reads from the trailer', async (t) => {
  const random = seededRandom()
  t.diagnostic(`SEED=${random.seed}`)
  const records = Array.from({ length: 300 }, (_, mark): PcapRecord => {
    const nicNs = NOW_NS + BigInt(mark) * 1_000_000n
    const trailer = Buffer.alloc(12)
    trailer.writeUInt8(9, 0)
    trailer.writeUInt8(random.integer(0, 255), 1)
    trailer.writeUInt32BE(NOW_SECONDS, 2)
    // Smaller than today's seconds: followed by an FCS, tshark could mistake it for those.
    trailer.writeUInt32BE(random.integer(0, 1_600_000_000), 6)
    trailer.writeUInt8(random.integer(0, 255), 10)
    const frame = mark % 10 === 0 ? udpFrame(mark) : Buffer.concat([withFcs(udpFrame(mark)), trailer])
    const captured = random.next() < 0.5 ? frame : withFcs(frame)
    return { ns: nicNs, originalLength: captured.length, captured }
  })
  await using root = await tempFolder()
  const file = join(root.path, 'made.pcap')
  await writeFile(file, makePcap(records))
  const read = tsharkFields(file, ['exablaze.timestamp'], ['--enable-heuristic', 'exablaze_eth'])
  const times = read.map(([time = '']) => (time === '' ? undefined : tsharkTimeNs(time)))
  assert.equal(countUndefined(times), 30n)
  await checkDownload(file, 'vendorB3550', times)
})

const WITH_HEADERS = ['switch-time-header.pcap', 'tcpdump_arista_ether.pcap']
const WITH_COUNTERS = ['switch-counter-mirrored.pcap', 'tcpdump_erspan-type-iii-ft-0.pcap']

test('vendorA7280_eth64 is what tshark reads from headers of all versions', async () => {
  for (const file of capturesNamed(...WITH_HEADERS)) await checkHeaders(file)
})

async function checkHeaders(file: string): Promise<void> {
  const names = ['frame.time_epoch', 'avsp.ver', 'avsp.64sec', 'avsp.64ns', 'avsp.48sec', 'avsp.48ns']
  const bytes = readPcap(await readFile(file)).records
  const times = tsharkFields(file, names).map(([epoch = '', version, sec, ns, sec16, ns48], index) => {
    if (sec) return BigInt(sec) * SECOND_NS + BigInt(ns ?? '')
    const nicSeconds = BigInt(epoch.slice(0, epoch.indexOf('.')))
    if (sec16) return (nicSeconds - (nicSeconds % 65_536n) + BigInt(sec16)) * SECOND_NS + BigInt(ns48 ?? '')
    // This tshark does not know the R3 hardware, so the same fields are parsed here.
    const frame = bytes[index]?.captured ?? Buffer.alloc(0)
    if (version === '0x0011' || version === '0x0111') {
      return BigInt(frame.readUInt32BE(18)) * SECOND_NS + BigInt(frame.readUInt32BE(22))
    }
    assert.ok(version === '0x0021' || version === '0x0121', `version ${version}`)
    const seconds = nicSeconds - (nicSeconds % 65_536n) + BigInt(frame.readUInt16BE(18))
    return seconds * SECOND_NS + BigInt(frame.readUInt32BE(20))
  })
  await checkDownload(file, 'vendorA7280_eth64', times)
}

/** A mirrored packet with the sub-header that belongs to `platform`. */
function erspanFrame(granularity: number, low: number, platform: number, upper: number): Buffer {
  const ethernet = '02aabbccddee00f2112233440800'
  const ip = '4500005200000000402f00000a0000010a000002'
  const gre = '100022eb00000001'
  const erspan = Buffer.alloc(20)
  erspan.writeUInt32BE(0x20640005)
  erspan.writeUInt32BE(low, 4)
  erspan.writeUInt16BE(0x0001 | (granularity << 1), 10)
  erspan.writeUInt32BE(platform * 2 ** 26, 12)
  erspan.writeUInt32BE(upper, 16)
  return Buffer.concat([Buffer.from(ethernet + ip + gre, 'hex'), erspan, Buffer.alloc(40, 1)])
}

test('vendorB_erspan3 is the whole time that tshark reads from both parts of the header', async () => {
  const records = Array.from({ length: 120 }, (_, index): PcapRecord => {
    const ns = NOW_NS + BigInt(index) * 12_345_678_901n
    const timeNs = ns + 1_234_567n
    const platform = [3, 7, 5][index % 3] ?? 0
    const captured =
      platform === 5
        ? erspanFrame(2, Number(timeNs % SECOND_NS), platform, Number(timeNs / SECOND_NS))
        : erspanFrame(3, Number(timeNs & 0xffffffffn), platform, Number(timeNs >> 32n))
    return { ns, originalLength: captured.length, captured }
  })
  await using root = await tempFolder()
  const file = join(root.path, 'made.pcap')
  await writeFile(file, makePcap(records))
  const names = [
    'erspan.timestamp',
    'erspan.pid3.timestamp',
    'erspan.pid5.timestamp',
    'erspan.pid7.timestamp',
  ]
  const times = tsharkFields(file, names).map(([low = '', pid3, pid5, pid7]) =>
    pid5 ? BigInt(pid5) * SECOND_NS + BigInt(low) : (BigInt(pid3 || pid7 || '') << 32n) | BigInt(low),
  )
  await checkDownload(file, 'vendorB_erspan3', times)
})

test('vendorB_erspan3 follows the free-running counter that tshark shows', async () => {
  for (const file of capturesNamed(...WITH_COUNTERS)) await checkCounter(file)
})

async function checkCounter(file: string): Promise<void> {
  const { records } = readPcap(await readFile(file))
  const counters = tsharkFields(file, ['erspan.timestamp']).map(([counter = '']) => BigInt(counter))
  let wraps = 0n
  const times = counters.map((counter, index) => {
    if (counter < (counters[index - 1] ?? 0n)) wraps++
    // The unit is 2.4 ns. It is not known yet at the first packet, which keeps its NIC time.
    const ticks = counter + (wraps << 32n) - (counters[0] ?? 0n)
    return index === 0 ? undefined : (records[0]?.ns ?? 0n) + (ticks * 12n) / 5n
  })
  await checkDownload(file, 'vendorB_erspan3', times)
}

/** Times in a capture with key frames of version 2 and without VLANs. */
function a7150Times(records: readonly PcapRecord[], tickFromEnd: number): (bigint | undefined)[] {
  let key = { tick: 0n, utcNs: 0n }
  return records.map(({ captured }) => {
    if (captured.readUInt16BE(12) === 0x0800 && captured[23] === 253) {
      key = { tick: captured.readBigUInt64BE(34) % 2n ** 31n, utcNs: captured.readBigUInt64BE(42) }
      return undefined
    }
    const word = captured.readUInt32BE(captured.length - tickFromEnd)
    const tick = BigInt(Math.floor(word / 256) * 128 + (word % 128))
    return key.utcNs + (((tick - key.tick + 2n ** 31n) % 2n ** 31n) * 20n) / 7n
  })
}

const WITH_TICKS = [
  {
    files: capturesNamed('switch-ticks-appended.pcap', 'n3550_exa.mode.append-compat.pcap'),
    source: 'vendorA7150_insert',
    tickFromEnd: 8,
  },
  {
    files: capturesNamed('switch-ticks-for-fcs.pcap', 'n3550_exa.mode.fcs-compat.pcap'),
    source: 'vendorA7150_overwrite',
    tickFromEnd: 4,
  },
] as const

for (const { files, source, tickFromEnd } of WITH_TICKS) {
  test(`${source} counts from key frames`, async () => {
    for (const file of files) {
      await checkDownload(file, source, a7150Times(readPcap(await readFile(file)).records, tickFromEnd))
    }
  })
}

test('no time depends on the range', async () => {
  const cases = [
    ...WITH_TICKS,
    { files: capturesNamed(...WITH_COUNTERS), source: 'vendorB_erspan3' },
    { files: capturesNamed(...WITH_HEADERS), source: 'vendorA7280_eth64' },
  ] as const
  for (const [file, source] of cases.flatMap(({ files, source }) =>
    files.map((file) => [file, source] as const),
  )) {
    await using root = await tempFolder()
    const streams = await importFile(file, join(root.path, 'capture'))
    const { records: byNic } = await download(streams, {})
    const { records: whole } = await download(streams, { timeSource: source })
    const known = new Set(stamps(whole))
    for (const { ns: beginNs } of byNic) {
      const { records } = await download(streams, { timeSource: source, beginNs })
      assert.equal(records.length, byNic.filter(({ ns }) => ns >= beginNs).length)
      assert.deepEqual(
        stamps(records).filter((stamp) => !known.has(stamp)),
        [],
        `${file} from ${beginNs}`,
      )
    }
  }
})

test('no time depends on the filter or Slice', async () => {
  const filter = compileFilter('not ip proto 253').program
  for (const [file, source] of WITH_TICKS.flatMap(({ files, source }) =>
    files.map((file) => [file, source] as const),
  )) {
    await using root = await tempFolder()
    const streams = await importFile(file, join(root.path, 'capture'))
    const { records: whole } = await download(streams, { timeSource: source })
    const { records } = await download(streams, { timeSource: source, filter, sliceBytes: 20 })
    const stamped = whole.filter(({ captured }) => captured[23] !== 253)
    assert.ok(stamped.length > 2)
    const cut = stamped.map(({ captured, ns }) => ({ captured: captured.subarray(0, 20), ns }))
    assert.deepEqual(stamps(records), stamps(cut))
  }
})
