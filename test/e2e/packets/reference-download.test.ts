// Random queries: each download equals that of a slow reference implementation, byte for byte.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import {
  COMPRESSIONS,
  type Compression,
  encodingOf,
} from '../../../src/shared/query/download/query-values.ts'
import { TIME_SOURCES } from '../../../src/shared/query/time-source.ts'
import { readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { makePcapng } from '../../support/packets/pcapng-maker.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { type CapturePlan, makeReferenceCapture } from '../../support/reference/reference-captures.ts'
import {
  type ReferenceQuery,
  referenceDownload,
  type StoredPacket,
} from '../../support/reference/reference-download.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const CASES = Number(process.env.CAPFLEET_REFERENCE_CASES ?? 120)
const random = seededRandom()
const START_NS = 1_790_000_000_000_000_000n
const SNAPLEN = 262_144

interface Capture {
  readonly name: string
  readonly startNs: bigint
  /** The packets of each port. */
  readonly streams: readonly StoredPacket[][]
}

const DENSE = [0, 0, 1, 1_000, 3_000_000]
/** Long enough for counters to wrap and for key frames to become too old. */
const SPARSE = [0, 1_000, 3_000_000, 30_000_000, 900_000_000]

/** Overlapping in time; older ones first, as the appliance orders them. */
const CAPTURES = [
  { name: 'alpha', ports: 3, packets: 900, startNs: START_NS, gapsNs: DENSE },
  { name: 'beta', ports: 2, packets: 500, startNs: START_NS + 200_000_001n, gapsNs: SPARSE },
  { name: 'gamma', ports: 2, packets: 300, startNs: START_NS + 900_000_001n, gapsNs: DENSE },
].map(makeCapture)
const END_OF_TIME_NS = 2n ** 32n * 1_000_000_000n

function makeCapture(plan: Omit<CapturePlan, 'longGapShare'>): Capture {
  const streams = makeReferenceCapture(random, { ...plan, longGapShare: 0.003 })
  return { name: plan.name, startNs: plan.startNs, streams }
}

let appliance: TempAppliance
before(async () => {
  // Small segments, so that queries reach their boundaries.
  appliance = await startTempAppliance({ segmentBytes: 1 << 20 })
  for (const { name, streams } of CAPTURES) {
    const path = join(appliance.folder, `${name}.pcapng`)
    await writeFile(path, makePcapng(streams.length, streams.flat()))
    await appliance.importFiles(name, path)
  }
})
after(() => appliance[Symbol.asyncDispose]())

const sometimes = <Value>(share: number, value: () => Value): Value | undefined =>
  random.next() < share ? value() : undefined

function randomInstant(): bigint {
  const packets = random.pick(random.pick(CAPTURES).streams)
  return random.pick(packets).ns + BigInt(random.integer(-1, 1))
}

const FIELDS = {
  'capture.port': 3,
  'a7130.device': 3,
  'a7130.srcdevice': 3,
  'a7130.srcport': 4,
  'c3550.srcport': 4,
} as const

function randomCondition(): ReferenceQuery['conditions'][number] {
  const field = random.pick(Object.keys(FIELDS) as (keyof typeof FIELDS)[])
  const values = Array.from({ length: random.integer(1, 3) }, () => random.integer(0, FIELDS[field]))
  return { field, op: random.pick(['==', '!=']), values }
}

const PATTERNS = [/packet [0-9]*7 /, /alpha|beta/, /x{100,}/, /^.{60,}gamma/s]

function randomQuery(): ReferenceQuery {
  const [beginNs = 0n, endNs = 0n] = [randomInstant(), randomInstant()].toSorted((a, b) => (a < b ? -1 : 1))
  return {
    beginNs,
    endNs,
    conditions: sometimes(0.4, () => Array.from({ length: random.integer(1, 2) }, randomCondition)) ?? [],
    udpPort: sometimes(0.4, () => random.pick([53, 123, 443])),
    isDecap: random.next() < 0.4,
    pattern: sometimes(0.3, () => random.pick(PATTERNS)),
    mode: random.pick(TIME_SOURCES),
    tsMaxNs: sometimes(0.2, () => BigInt(random.integer(1, 900_000_000))),
    sliceBytes: sometimes(0.3, () => random.integer(1, 300)),
    maxPackets: sometimes(0.2, () => random.integer(1, 500)),
    maxBytes: sometimes(0.2, () => random.integer(24, 60_000)),
    isMicroseconds: random.next() < 0.2,
  }
}

function filtersOf(query: ReferenceQuery): Record<string, string | undefined> {
  const conditions = query.conditions.map(({ field, op, values }) => `${field} ${op} ${values.join(',')}`)
  return {
    FilterFrame: conditions.length === 0 ? undefined : conditions.join(' and '),
    FilterBPF: query.udpPort === undefined ? undefined : `udp dst port ${query.udpPort}`,
    FilterBPFDecap: String(query.isDecap),
    FilterRE: query.pattern?.source,
    TSMode: query.mode,
    TSMax: query.tsMaxNs?.toString(),
    Slice: query.sliceBytes?.toString(),
    MaxPackets: query.maxPackets?.toString(),
    MaxBytes: query.maxBytes?.toString(),
    TSResolution: query.isMicroseconds ? 'usec' : 'nsec',
  }
}

/** A path with a query string, the captures that it reads, and the query as the reference implementation takes it. */
interface Case {
  readonly path: string
  readonly captures: readonly Capture[]
  readonly query: ReferenceQuery
}

/** Puts a limit of the query exactly on a packet, where "less" and "less or equal" differ. */
function sharpen(query: ReferenceQuery): ReferenceQuery {
  if (random.next() < 0.6) return query
  const unlimited = { ...query, maxPackets: undefined, maxBytes: undefined, tsMaxNs: undefined }
  const streams = CAPTURES.flatMap((capture) => capture.streams)
  const { records } = readPcap(referenceDownload(streams, unlimited, SNAPLEN).pcap)
  const [first] = records
  if (first === undefined) return query
  const count = random.integer(1, records.length)
  const bytes = records.slice(0, count).reduce((sum, { captured }) => sum + 16 + captured.length, 24)
  const distanceNs = (records[count - 1]?.ns ?? 0n) - first.ns
  return random.pick([
    { ...unlimited, maxBytes: bytes },
    { ...unlimited, maxPackets: count },
    distanceNs > 0n && !query.isMicroseconds ? { ...unlimited, tsMaxNs: distanceNs } : unlimited,
  ])
}

function randomCase(): Case {
  const query = sharpen(randomQuery())
  const kind = random.pick(['timerange', 'timerange', 'splittime', 'single', 'legacy split'])
  const [capture] = [random.pick(CAPTURES)]
  const filters = Object.entries(filtersOf(query)).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  )
  const path = (folder: string, ...parameters: string[]): string =>
    `${folder}?${[...parameters, ...filters].join('&')}`
  if (kind === 'timerange') {
    const range = [`TSBegin=${query.beginNs}`, `TSEnd=${query.endNs}`, 'TSUnit=nanos']
    return { path: path('/api/v1/pcap/timerange', ...range), captures: CAPTURES, query }
  }
  const name = `StreamName=${capture.name}`
  if (kind === 'single') {
    const everything = { ...query, beginNs: 0n, endNs: END_OF_TIME_NS }
    return { path: path('/api/v1/pcap/single', name), captures: [capture], query: everything }
  }
  const folder = kind === 'splittime' ? '/api/v1/pcap/splittime' : '/pcap/splittime'
  const range = [`Start=${query.beginNs}ULL`, `Stop=${query.endNs}ULL`]
  return { path: path(folder, name, ...range), captures: [capture], query }
}

test(`the captures have packets with a time of every vendor (SEED=${random.seed})`, () => {
  const packets = CAPTURES.flatMap(({ streams }) => streams.flat())
  for (const mode of TIME_SOURCES) {
    if (mode === 'nic') continue
    const stamped = packets.filter(({ times }) => times[mode] !== undefined).length
    assert.ok(stamped > 50 && stamped < packets.length / 2, `${stamped} of ${packets.length} in ${mode}`)
  }
})

test(`${CASES} random downloads equal the reference (SEED=${random.seed})`, async () => {
  let packets = 0
  for (let round = 0; round < CASES; round++) {
    const { path, captures, query } = randomCase()
    const compression = random.pick(COMPRESSIONS)
    const where = `SEED=${random.seed} case ${round}: ${path}`
    const answer = await appliance.get(`${path}&Compression=${compression}`)
    assert.equal(answer.status, 200, `${where}: ${answer.body.toString('utf8', 0, 500)}`)
    const body = unpack(answer.body, compression)
    const expected = referenceDownload(
      captures.flatMap(({ streams }) => streams),
      query,
      SNAPLEN,
    )
    const wanted = readPcap(expected.pcap).records
    if (!body.equals(expected.pcap)) {
      assert.deepEqual(recordLines(readPcap(body).records), recordLines(wanted), where)
      assert.deepEqual(body.subarray(0, 24), expected.pcap.subarray(0, 24), where)
    }
    const { trailers } = answer
    assert.equal(trailers['capfleet-packets'], String(wanted.length), where)
    assert.equal(trailers['capfleet-truncated'], expected.nextNs === undefined ? '0' : '1', where)
    const isLimited = [query.maxBytes, query.maxPackets, query.tsMaxNs].some((limit) => limit !== undefined)
    if (!isLimited) {
      const fallbacks = query.mode === 'nic' ? 0 : expected.fallbacks
      assert.equal(trailers['capfleet-ts-fallbacks'], String(fallbacks), where)
      assert.equal(trailers['capfleet-late-packets'], String(expected.late), where)
    }
    packets += wanted.length
  }
  assert.ok(packets > 20 * CASES, `only ${packets} packets were compared`)
})

function unpack(body: Buffer, compression: Compression): Buffer {
  const encoding = encodingOf(compression)
  if (encoding === 'none') return body
  // Node's one-shot zstd decoder stops after the first of several frames.
  return encoding === 'zstd'
    ? execFileSync('zstd', ['-dcq'], { input: body, maxBuffer: 1 << 28 })
    : gunzipSync(body)
}
