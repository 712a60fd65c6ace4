import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { basename, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { storePaths } from '../../../appliance/store/store-paths.ts'
import { COMPRESSIONS, encodingOf } from '../../../src/shared/query/download/query-values.ts'
import { eventually } from '../../support/eventually.ts'
import { CAPTURE_FILES } from '../../support/packets/capture-files.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import {
  type PcapContent,
  type PcapRecord,
  readPcap,
  recordLines,
} from '../../support/packets/pcap-records.ts'
import { readPcapng } from '../../support/packets/pcapng-reader.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))
let appliance: TempAppliance

before(async () => {
  appliance = await startTempAppliance()
})
after(() => appliance[Symbol.asyncDispose]())

const byTime = (records: readonly PcapRecord[]): PcapRecord[] =>
  records.toSorted((a, b) => (a.ns < b.ns ? -1 : a.ns > b.ns ? 1 : 0))

/** The records that wiretap reads from any capture file. */
function oracle(path: string): PcapContent {
  return readPcap(execFileSync('editcap', ['-F', 'nsecpcap', path, '-'], { maxBuffer: 1 << 28 }))
}

/** With the zstd tool: Node's one-shot decoder stops after the first of several frames. */
function unpackZstd(bytes: Buffer): Buffer {
  return execFileSync('zstd', ['-dcq'], { input: bytes, maxBuffer: 1 << 28 })
}

const download = async (path: string): Promise<PcapContent> => {
  const answer = await appliance.get(path)
  assert.equal(answer.status, 200, answer.body.toString('utf8', 0, 500))
  assert.equal(answer.trailers['capfleet-complete'], '1')
  return readPcap(answer.body)
}

describe('a capture is returned packet for packet', () => {
  for (const [index, path] of CAPTURE_FILES.entries()) {
    test(basename(path), async () => {
      const expected = oracle(path)
      if (expected.records.length === 0 || path.includes('2107')) {
        const message = path.includes('2107')
          ? /contains no packets of the times that PCAP can store$/
          : /contains no packets$/
        await assert.rejects(appliance.importFiles(`file${index}`, path), {
          code: 'bad-capture-file',
          message,
        })
        return
      }
      const record = await appliance.importFiles(`file${index}`, path)
      const content = await download(`/api/v1/pcap/single?StreamName=file${index}`)
      assert.equal(BigInt(content.records.length), record.packets)
      assert.deepEqual(recordLines(content.records), recordLines(byTime(expected.records)))
      assert.equal(content.linkType, expected.linkType)
      const file = await readFile(path)
      if (file.length > 24 && [0xa1b2c3d4, 0xa1b23c4d].includes(file.readUInt32LE(0))) {
        assert.deepEqual(recordLines(content.records), recordLines(byTime(readPcap(file).records)))
      }
    })
  }
})

/** 3,000 packets over three captures; equal timestamps inside and across captures are frequent. */
async function importThree(prefix: string): Promise<PcapRecord[]> {
  const random = seededRandom(SEED)
  const all: PcapRecord[] = []
  for (let capture = 0; capture < 3; capture++) {
    let ns = START_NS
    const records = Array.from({ length: 1_000 }, (_, index) => {
      ns += BigInt(random.integer(0, 3))
      return makePacket(ns, `${prefix}${capture}:${index}`, random.integer(20, 400))
    })
    const path = join(appliance.folder, `${prefix}${capture}.pcap`)
    await writeFile(path, makePcap(records))
    await appliance.importFiles(`${prefix}${capture}`, path)
    all.push(...records)
  }
  return byTime(all)
}
const START_NS = 1_790_000_000_000_000_000n

describe(`three captures over the same time (SEED=${SEED})`, () => {
  let all: PcapRecord[]
  before(async () => {
    all = await importThree('part')
  })

  const range = (beginNs: bigint, endNs: bigint, more = ''): Promise<PcapContent> =>
    download(`/api/v1/pcap/timerange?TSBegin=${beginNs}&TSEnd=${endNs}&TSUnit=nanos${more}`)

  test('a time range merges them in the order of time', async () => {
    const { records } = await range(START_NS, START_NS + 10_000n)
    assert.equal(records.length, all.length)
    for (const [index, record] of records.entries()) {
      assert.ok(index === 0 || (records[index - 1]?.ns ?? 0n) <= record.ns)
    }
    assert.deepEqual(recordLines(records).toSorted(), recordLines(all).toSorted())
  })

  test('the merge is that of mergecap, but for the order at one instant', async () => {
    const { records } = await range(START_NS, START_NS + 10_000n)
    const paths = [0, 1, 2].map((capture) => join(appliance.folder, `part${capture}.pcap`))
    const merged = readPcap(
      execFileSync('mergecap', ['-F', 'nsecpcap', '-w', '-', ...paths], { maxBuffer: 1 << 28 }),
    )
    const instants = (of: readonly PcapRecord[]): bigint[] => of.map(({ ns }) => ns)
    assert.deepEqual(instants(records), instants(merged.records))
    assert.deepEqual(recordLines(records).toSorted(), recordLines(merged.records).toSorted())
  })

  test('cut at any instant, the parts put together are the whole', async () => {
    const random = seededRandom(SEED + 1)
    const whole = recordLines((await range(START_NS, START_NS + 10_000n)).records)
    for (let round = 0; round < 20; round++) {
      const cut = START_NS + BigInt(random.integer(0, 5_000))
      const parts = [await range(START_NS, cut), await range(cut, START_NS + 10_000n)]
      assert.deepEqual(
        parts.flatMap(({ records }) => recordLines(records)),
        whole,
      )
    }
  })

  test('the splits of one capture put together are the capture', async () => {
    const single = await download('/api/v1/pcap/single?StreamName=part1')
    const cuts = [0n, 1n, 500n, 501n, 1_000n, 5_000n].map((offset) => START_NS + offset)
    const parts: string[] = []
    for (const [index, start] of cuts.slice(0, -1).entries()) {
      const part = await download(
        `/api/v1/pcap/splittime?StreamName=part1&Start=${start}ULL&Stop=${cuts[index + 1]}ULL&&`,
      )
      parts.push(...recordLines(part.records))
    }
    assert.deepEqual(parts, recordLines(single.records))
  })

  test('Slice keeps the first bytes and the original length', async () => {
    const { records, snaplen } = await range(START_NS, START_NS + 10_000n, '&Slice=30')
    assert.equal(snaplen, 30)
    assert.ok(records.every(({ captured }) => captured.length <= 30))
    assert.deepEqual(
      records.map(({ originalLength }) => originalLength).toSorted((a, b) => a - b),
      all.map(({ originalLength }) => originalLength).toSorted((a, b) => a - b),
    )
  })

  test('TSMax ends the range that long after the first packet', async () => {
    const { records } = await range(START_NS, START_NS + 10_000n, '&TSMax=100')
    const firstNs = all[0]?.ns ?? 0n
    assert.equal(records.length, all.filter(({ ns }) => ns < firstNs + 100n).length)
  })

  test('TSResolution=usec writes microseconds', async () => {
    const content = await range(START_NS, START_NS + 10_000n, '&TSResolution=usec')
    assert.equal(content.nanoseconds, false)
    assert.deepEqual(
      content.records.map(({ ns }) => ns),
      all.map(({ ns }) => (ns / 1_000n) * 1_000n),
    )
  })

  for (const compression of COMPRESSIONS.filter((name) => name !== 'none')) {
    test(`Compression=${compression} unpacks to the same bytes`, async () => {
      const query = '/api/v1/pcap/single?StreamName=part0'
      const plain = await appliance.get(query)
      const packed = await appliance.get(`${query}&Compression=${compression}`)
      const isZstd = encodingOf(compression) === 'zstd'
      const unpacked = isZstd ? unpackZstd(packed.body) : gunzipSync(packed.body)
      assert.ok(unpacked.equals(plain.body))
      assert.equal(packed.headers['content-encoding'], undefined)
      assert.equal(packed.headers['content-type'], isZstd ? 'application/zstd' : 'application/gzip')
      assert.equal(
        packed.headers['content-disposition'],
        `attachment; filename="part0.pcap.${isZstd ? 'zst' : 'gz'}"`,
      )
    })
  }
})

test('a range without packets is the bare header, which tcpdump reads', async () => {
  const answer = await appliance.get('/api/v1/pcap/timerange?TSBegin=1&TSEnd=2&TSUnit=nanos')
  assert.equal(answer.status, 200)
  assert.equal(answer.body.length, 24)
  execFileSync('tcpdump', ['-nr', '-'], { input: answer.body, stdio: ['pipe', 'pipe', 'pipe'] })
})

test('the headers say what was understood', async () => {
  const answer = await appliance.get(
    '/api/v1/pcap/timerange?TSBegin=1000000000&TSEnd=1000000001&foo=1&b%C3%A9=2&rand=7',
  )
  assert.equal(answer.headers['capfleet-ts-unit'], 'sec')
  assert.equal(answer.headers['capfleet-order'], 'time')
  assert.equal(answer.headers['capfleet-ignored'], 'foo, b%C3%A9')
  assert.equal(answer.headers['cache-control'], 'no-store')
  assert.equal(answer.headers['x-accel-buffering'], 'no')
  assert.equal(answer.headers['content-type'], 'application/vnd.tcpdump.pcap')
  assert.equal(answer.trailers['capfleet-bytes'], String(answer.body.length))
  assert.equal(answer.trailers['capfleet-packets'], '0')
})

test('with timestamps of a switch the order is not guaranteed', async () => {
  const answer = await appliance.get('/api/v1/pcap/timerange?TSBegin=1&TSEnd=2&TSUnit=sec&TSMode=vendorA7130')
  assert.deepEqual([answer.status, answer.headers['capfleet-order']], [200, undefined])
})

describe('one small capture', () => {
  const records = [makePacket(START_NS, 'one', 60), makePacket(START_NS + 1n, 'two', 60)]
  before(async () => {
    const path = join(appliance.folder, 'small.pcap')
    await writeFile(path, makePcap(records))
    await appliance.importFiles('small_20261120_0930', path)
  })

  test('is found by its base name, and the file is called by its full name', async () => {
    const answer = await appliance.get('/api/v1/pcap/single?StreamName=small')
    assert.equal(readPcap(answer.body).records.length, 2)
    assert.match(answer.headers['content-disposition'] ?? '', /"small_20261120_0930\.pcap"/)
  })

  test('files of splits and of time ranges are called by their times too', async () => {
    const fileOf = async (path: string) =>
      (await appliance.get(`/api/v1/pcap/${path}`)).headers['content-disposition']
    assert.equal(
      await fileOf('splittime?StreamName=small&Start=5&Stop=7&Compression=zstd'),
      'attachment; filename="small_20261120_0930_19700101T000000.000000005Z-19700101T000000.000000007Z.pcap.zst"',
    )
    assert.match(
      (await fileOf('timerange?TSBegin=5&TSEnd=7&TSUnit=nanos')) ?? '',
      /"\S+_19700101T000000\.000000005Z-19700101T000000\.000000007Z\.pcap"$/,
    )
  })

  test('HEAD answers the same head, checks everything and has no body', async () => {
    const head = await appliance.get('/api/v1/pcap/single?StreamName=small&Compression=9', { method: 'HEAD' })
    assert.equal(head.status, 200)
    assert.equal(head.body.length, 0)
    assert.equal(head.headers['content-type'], 'application/gzip')
    const bad = await appliance.get('/api/v1/pcap/single?StreamName=small&FilterBPF=nonsense', {
      method: 'HEAD',
    })
    assert.equal(bad.status, 400)
  })

  test('HTTP/1.0 gets the body without chunks and trailers, and the connection ends', async () => {
    const { hostname, port } = new URL(appliance.url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    const authorization = Buffer.from(appliance.credentials('user')).toString('base64')
    socket.write(
      `GET /api/v1/pcap/single?StreamName=small HTTP/1.0\r\nAuthorization: Basic ${authorization}\r\n\r\n`,
    )
    const answer = await buffer(socket)
    const split = answer.indexOf('\r\n\r\n')
    const head = answer.toString('latin1', 0, split)
    assert.match(head, /^HTTP\/1\.1 200 /)
    assert.match(head, /^connection: close$/im)
    assert.doesNotMatch(head, /^(trailer|transfer-encoding):/im)
    assert.deepEqual(recordLines(readPcap(answer.subarray(split + 4)).records), recordLines(records))
  })
})

/** Imports a capture, one bit of which is then wrong. Returns the packets that were imported. */
async function importDamaged(name: string): Promise<readonly PcapRecord[]> {
  const records = Array.from({ length: 4_000 }, (_, index) =>
    makePacket(START_NS + BigInt(index), `packet ${index}`, 500),
  )
  const path = join(appliance.folder, `${name}.pcap`)
  await writeFile(path, makePcap(records))
  await appliance.importFiles(name, path)
  await flipBit(join(appliance.storePath, 'captures', name, 'cap0', '00000', '00000001.pcap'), 1_000_000)
  return records
}

test('damaged bytes in the store are left out, counted and never delivered', async () => {
  const records = await importDamaged('rot')
  for (const more of ['', '&FilterBPF=greater+1', '&Slice=40', '&Compression=zstd']) {
    const answer = await appliance.get(`/api/v1/pcap/single?StreamName=rot${more}`)
    assert.equal(answer.status, 200)
    assert.equal(answer.trailers['capfleet-corrupt-blocks'], '1')
    assert.equal(answer.trailers['capfleet-complete'], '0')
    const body = more.includes('zstd') ? unpackZstd(answer.body) : answer.body
    const delivered = readPcap(body).records
    assert.equal(answer.trailers['capfleet-packets'], String(delivered.length))
    assert.ok(delivered.length < records.length && delivered.length > records.length - 1_000)
    const known = new Map(records.map((record) => [record.ns, record]))
    for (const { ns, captured } of delivered) {
      assert.ok(known.get(ns)?.captured.subarray(0, captured.length).equals(captured))
    }
  }
  const metrics = (await appliance.get('/metrics')).body.toString()
  assert.match(metrics, /^capfleet_corrupt_blocks_total 4$/m)
  // The recorder has been told; from then on all other parts report the deletion too.
  await eventually(async () => (await stateOf('rot')) === 'damaged', { message: 'the list tells of it' })
  const next = await appliance.get('/api/v1/pcap/single?StreamName=rot')
  assert.equal(next.headers['capfleet-damaged-segments'], '1')
  const estimate = (await appliance.get('/api/v1/pcap/estimate?StreamName=rot')).json()
  assert.deepEqual([estimate.Exact, estimate.Packets], [false, next.trailers['capfleet-packets']])
  const events = await readFile(storePaths(appliance.storePath).events.newest, 'utf8')
  assert.match(events, /"capture-damaged".*bytes differ from those written/)
})

test('a file in pcapng names damage that its own download has found, as later ones do', async () => {
  await importDamaged('fresh')
  const ask = () => appliance.get('/api/v1/pcap/single?StreamName=fresh&Format=pcapng')
  const first = await ask()
  assert.match(
    readPcapng(first.body).endComments.join('\n'),
    /1 damaged blocks are missing\ncapfleet damage: some packets of cap0 between /,
  )
  assert.ok((await ask()).body.equals(first.body), 'so it can be continued')
})

test('a download that meets a segment without packets fails, and the next one counts it as lost', async () => {
  const beginNs = 2n * START_NS
  const records = ['first', 'second'].map((name, index) => makePacket(beginNs + BigInt(index), name, 60))
  for (const [index, record] of records.entries()) {
    const path = join(appliance.folder, `gone${index}.pcap`)
    await writeFile(path, makePcap([record]))
    await appliance.importFiles(`gone${index}`, path)
  }
  await rm(join(appliance.storePath, 'captures', 'gone0', 'cap0', '00000', '00000001.pcap'))
  const ask = () =>
    appliance.get(
      `/api/v1/pcap/timerange?TSBegin=${beginNs}&TSEnd=${beginNs + 2n}&TSUnit=nanos&FilterBPF=less+100`,
    )
  await assert.rejects(ask())
  await eventually(async () => (await stateOf('gone0')) === 'damaged', { message: 'the list tells of it' })
  const answer = await ask()
  assert.equal(answer.headers['capfleet-damaged-segments'], '1')
  assert.deepEqual(
    [answer.trailers['capfleet-complete'], answer.trailers['capfleet-corrupt-blocks']],
    ['0', '1'],
  )
})

async function stateOf(name: string): Promise<string | undefined> {
  const { List } = (await appliance.get('/stream/list')).json() as {
    readonly List: readonly { readonly StreamName: string; readonly State: string }[]
  }
  return List.find(({ StreamName }) => StreamName === name)?.State
}

test('a damaged or missing index is rebuilt from the packets; missing packets are reported as a loss', async () => {
  const path = join(appliance.folder, 'lost.pcap')
  await writeFile(path, makePcap([makePacket(START_NS, 'lost', 60)]))
  await appliance.importFiles('lost', path)
  const segment = join(appliance.storePath, 'captures', 'lost', 'cap0', '00000', '00000001')
  const ask = () => appliance.get('/api/v1/pcap/single?StreamName=lost')
  const whole = await ask()
  await truncate(`${segment}.idx`, 10)
  const damaged = await ask()
  assert.deepEqual([damaged.status, damaged.body], [200, whole.body])
  assert.equal(damaged.trailers['capfleet-corrupt-blocks'], '0')
  assert.equal(await appliance.slotsUsed(), 0)
})

async function flipBit(path: string, offset: number): Promise<void> {
  await using file = await open(path, 'r+')
  const byte = Buffer.alloc(1)
  await file.read(byte, 0, 1, offset)
  byte.writeUInt8(byte.readUInt8(0) ^ 1, 0)
  await file.write(byte, 0, 1, offset)
}
