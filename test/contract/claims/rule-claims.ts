/** Section 1 of the decisions: rules that hold everywhere. */
import assert from 'node:assert/strict'
import { readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { countByTcpdump } from '../check-claim.ts'
import { type Claim, FLEET_ONLY, packets, row } from '../claim.ts'
import { ALPHA, BIG, packetsOf, SECOND_NS } from '../contract-captures.ts'
import {
  BEGIN_NS,
  END_NS,
  IN_RANGE,
  NANOS,
  RANGE,
  RANGE_PATH,
  READ_PATHS,
  SINGLE,
  SPLIT,
  START_CAPTURE,
  STOP_CAPTURE,
} from '../contract-queries.ts'
import type { Place, Seen } from '../place.ts'
import { holdDownloads } from '../slots.ts'

/** From BEGIN_NS to END_NS. */
const FILE_TIMES = '20260921T141321Z-20260921T141323Z'
const MIDDLE_NS = BEGIN_NS + SECOND_NS
const EMPTY_RANGE = `${RANGE_PATH}?TSBegin=1&TSEnd=2&TSUnit=sec`
const DOWNLOADS = [SINGLE, RANGE, SPLIT]

const linesOf = async (at: Place, target: string): Promise<string[]> => {
  const answer = await at.ask(target)
  assert.equal(answer.status, 200, answer.text.slice(0, 300))
  return recordLines(readPcap(answer.body).records)
}

/** Two adjacent parts of the range together are the range. */
async function areAdjacent(at: Place, path: string, [begin, end]: readonly [string, string]): Promise<void> {
  const part = (from: bigint, to: bigint) => linesOf(at, `${path}${begin}=${from}&${end}=${to}`)
  const parts = [...(await part(BEGIN_NS, MIDDLE_NS)), ...(await part(MIDDLE_NS, END_NS))]
  assert.deepEqual(parts, await part(BEGIN_NS, END_NS))
  // A packet exactly at a boundary is in the later part.
  const at0 = packetsOf('alpha')[100]?.ns ?? 0n
  assert.equal((await part(at0, at0)).length, 0)
  assert.ok((await part(at0, at0 + 1n)).length > 0)
}

const STREAM = '/stream/list'
const PATHS_WITH_QUERY = [
  ...DOWNLOADS,
  `${STREAM}?`,
  `/stream/ssize?StreamName=${ALPHA}`,
  '/sysmaster/capture_status?',
  '/api/v1/system/version?',
]
/** A metric of the gateway itself. */
const OWN_PATHS = ['/v1/devices?', '/v1/devices/east?', '/v1/queue?', `/v1/estimate?StreamName=${ALPHA}`].map(
  (path) => ({ path, out: FLEET_ONLY }),
)
const TAKEN_PATHS = [...PATHS_WITH_QUERY.map((path) => ({ path, out: {} })), ...OWN_PATHS]
const SCRIPT_QUERY = `StreamName=${ALPHA}&&Start=${BEGIN_NS}ULL&Stop=${END_NS}ULL&TSBegin=${BEGIN_NS}ULL&TSEnd=${END_NS}ULL`

const EXACT_PATHS = [
  STREAM,
  `/stream/stime?StreamName=${ALPHA}`,
  '/api/v1/system/status',
  '/sysmaster/capture_status',
  '/sysmaster/stats_summary',
]
const AS_TEXT = { fleet: 'the digits of the text count, and the walk takes the answer out of the fleet’s' }

/** A number that a double would round has a text with its digits beside it. */
function hasExactTexts({ text }: Seen): void {
  for (const [member, name, digits] of text.matchAll(/"(\w+)":(\d{16,})/g)) {
    assert.ok(Number(digits) <= 2 ** 53 || text.includes(`"${name}Exact":"${digits}"`), member)
  }
}

/** The query string of existing scripts, on every path that reads. */
async function takesScripts(at: Place): Promise<void> {
  for (const path of READ_PATHS) {
    const { status, text } = await at.ask(`${path}?${SCRIPT_QUERY}&&rand=0.25&`)
    assert.equal(status, 200, `${path}: ${text.slice(0, 300)}`)
  }
  await at.appliance.get(STOP_CAPTURE)
  const name = `scripted${at.route}_20260920_1413`
  await at.stand.importSmall('east', name)
  for (const change of [
    `${START_CAPTURE}?StreamName=scripted`,
    `${STOP_CAPTURE}?`,
    `/pcap/del?StreamName=${name}`,
  ]) {
    const { status, text } = await at.ask(`${change}&&rand=0.25&`)
    assert.equal(status, 200, `${change}: ${text.slice(0, 300)}`)
  }
}

export const RULE_CLAIMS: readonly Claim[] = [
  row('D1-1', 'Ranges are half-open: two adjacent ones are the whole, nothing twice and nothing lost.', {
    act: async (at) => {
      await areAdjacent(at, `${RANGE_PATH}?`, ['TSBegin', 'TSEnd'])
      await areAdjacent(at, `/api/v1/pcap/splittime?StreamName=${ALPHA}&`, ['Start', 'Stop'])
    },
  }),
  row(
    'D1-2',
    'Integers may end in ULL.',
    {
      get: `${RANGE_PATH}?TSBegin=${BEGIN_NS}ULL&TSEnd=${END_NS}ULL&TSMax=500000000ULL`,
      pcap: packets('alpha', { ...IN_RANGE, tsMaxNs: 500_000_000n }),
    },
    { get: `${RANGE_PATH}?TSBegin=0x10&TSEnd=20`, problem: ['bad-parameter', 'TSBegin'] },
  ),
  row('D1-3', 'Empty pairs, a trailing & and rand= are accepted on every path.', { act: takesScripts }),
  row('D1-4', '+ is a space.', {
    get: `${SINGLE}&FilterBPF=udp+dst+port+53`,
    pcap: packets('alpha', { udpPort: 53 }),
  }),
  row(
    'D1-5',
    'Nanoseconds in JSON are decimal strings; a legacy member that is a number has such a string beside it.',
    ...EXACT_PATHS.map((get) => ({ get, out: AS_TEXT, see: hasExactTexts })),
    {
      get: STREAM,
      see: (seen) => {
        const list = seen.json().List as Readonly<Record<string, unknown>>[]
        const entry = list.find(({ StreamName }) => StreamName === ALPHA)
        const startNs = String(packetsOf('alpha')[0]?.ns)
        assert.deepEqual([entry?.StartTS, entry?.DateExact, typeof entry?.Date], [startNs, startNs, 'number'])
      },
    },
    { get: '/api/v1/system/io_stats', members: { timestamp: /^\d{19}$/ } },
  ),
  row(
    'D1-6',
    'A download is a PCAP with nanoseconds.',
    ...DOWNLOADS.map((get) => ({
      get,
      see: (seen: { body: Buffer }) => assert.equal(seen.body.readUInt32LE(0), 0xa1b23c4d),
    })),
  ),
  row(
    'D1-7',
    'TSResolution=usec makes it one with microseconds.',
    ...DOWNLOADS.map((path) => ({
      get: `${path}&TSResolution=usec`,
      pcap: packets('alpha', { ...(path === SINGLE ? {} : IN_RANGE), isMicroseconds: true }),
    })),
  ),
  row('D1-8', 'An empty result is 200 with the 24 bytes of the header, which tcpdump reads.', {
    get: EMPTY_RANGE,
    see: async (seen) => {
      assert.equal(seen.body.length, 24)
      assert.equal(await countByTcpdump(seen.body), 0)
    },
  }),
  row(
    'D1-9',
    'The type is that of PCAP, or of gzip or zstd when it is compressed.',
    ...(
      [
        ['none', 'application/vnd.tcpdump.pcap'],
        ['fast', 'application/gzip'],
        ['zstd', 'application/zstd'],
      ] as const
    ).flatMap(([word, type]) =>
      DOWNLOADS.map((path) => ({ get: `${path}&Compression=${word}`, head: { 'Content-Type': type } })),
    ),
  ),
  row(
    'D1-10',
    'Downloads are attachments with a file name.',
    ...DOWNLOADS.map((get) => ({
      get,
      head: { 'Content-Disposition': /^attachment; filename="[\w.-]+\.pcap"$/ },
    })),
  ),
  row(
    'D1-11',
    'They are not stored by caches and not buffered by nginx.',
    ...DOWNLOADS.map((get) => ({
      get,
      head: { 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' },
    })),
  ),
  row(
    'D1-12',
    'The file is called by the full name of the capture, of a split also by its times.',
    {
      get: '/api/v1/pcap/single?StreamName=alpha',
      head: { 'Content-Disposition': `attachment; filename="${ALPHA}.pcap"` },
    },
    {
      get: `${SINGLE}&Compression=1`,
      head: { 'Content-Disposition': `attachment; filename="${ALPHA}.pcap.gz"` },
    },
    {
      get: `${SPLIT}&Compression=zstd`,
      head: { 'Content-Disposition': `attachment; filename="${ALPHA}_${FILE_TIMES}.pcap.zst"` },
    },
  ),
  row(
    'D1-13',
    'The file of a time range is called by the device, or "fleet", and the times.',
    { get: RANGE, head: { 'Content-Disposition': `attachment; filename="east_${FILE_TIMES}.pcap"` } },
    {
      get: `${RANGE_PATH}?${NANOS}&Device=*`,
      head: { 'Content-Disposition': `attachment; filename="fleet_${FILE_TIMES}.pcap"` },
      out: FLEET_ONLY,
    },
  ),
  row(
    'D1-14',
    'There is never a Content-Encoding, whatever the client accepts.',
    ...['none', 'fast', 'zstd'].map((word) => ({
      get: `${SINGLE}&Compression=${word}`,
      headers: { 'accept-encoding': 'gzip, zstd, br' },
      head: { 'Content-Encoding': undefined },
    })),
  ),
  row(
    'D1-15',
    'Unknown parameters are ignored and named in Capfleet-Ignored.',
    ...TAKEN_PATHS.map(({ path, out }) => ({
      get: `${path}&Colour=red&Size=2`,
      out,
      head: { 'Capfleet-Ignored': 'Colour, Size' },
    })),
  ),
  row(
    'D1-16',
    'With Strict=1 an unknown parameter is 400.',
    ...TAKEN_PATHS.map(({ path, out }) => ({
      get: `${path}&Colour=red&Strict=1`,
      out,
      problem: ['bad-parameter', 'Colour'] as const,
    })),
  ),
  row(
    'D1-17',
    'A parameter that is given twice is 400.',
    ...TAKEN_PATHS.map(({ path, out }) => ({
      get: `${path}&Colour=red&Colour=red`,
      out,
      problem: ['bad-parameter', 'Colour'] as const,
    })),
    { get: `${SINGLE}&StreamName=${ALPHA}`, problem: ['bad-parameter', 'StreamName'] },
  ),
  row(
    'D1-18',
    'All checks are made before a stream is taken: a mistake is named at once while all are in use.',
    {
      act: async (at) => {
        await using _held = await holdDownloads(at, 4)
        for (const [more, code] of [
          ['FilterBPF=tcp+prot', 'bad-bpf'],
          ['FilterFrame=x', 'bad-frame-filter'],
          ['Slice=0', 'bad-parameter'],
        ] as const) {
          const answer = await at.ask(`/api/v1/pcap/single?StreamName=${BIG}&${more}&Wait=20`)
          assert.deepEqual([answer.status, answer.json().code], [400, code])
        }
      },
    },
  ),
]
