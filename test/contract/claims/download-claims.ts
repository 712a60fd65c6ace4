/** Sections 4.4 to 4.4.3 of the reference: the V1 downloads and their parameters. */
import assert from 'node:assert/strict'
import { countByTcpdump } from '../check-claim.ts'
import { type Claim, FLEET_ONLY, packets, row } from '../claim.ts'
import { ALPHA, packetsOf, SECOND_NS, START_NS } from '../contract-captures.ts'
import {
  BEGIN_NS,
  END_NS,
  IN_RANGE,
  LOCAL,
  LOCAL_UNIT,
  RANGE,
  RANGE_PATH,
  SECONDS,
  SINGLE,
  SPLIT,
} from '../contract-queries.ts'
import type { Seen } from '../place.ts'

const WHOLE = packets('alpha')
const PART = packets('alpha', IN_RANGE)
const BPF = 'FilterBPF=udp+dst+port+53'
const FRAME = 'FilterFrame=capture.port==1'
const PORT_1 = { conditions: [{ field: 'capture.port', op: '==', values: [1] }] } as const
const DOWNLOADS = [
  [SINGLE, {}],
  [RANGE, IN_RANGE],
  [SPLIT, IN_RANGE],
] as const

/** The same parameter on single, timerange and splittime. */
const onAll = (parameter: string, query: Parameters<typeof packets>[1]) =>
  DOWNLOADS.map(([path, range]) => ({
    get: `${path}&${parameter}`,
    pcap: packets('alpha', { ...range, ...query }),
  }))

const onTwo = (parameter: string, query: Parameters<typeof packets>[1]) => onAll(parameter, query).slice(0, 2)

/** Starts before alpha's first packet and ends after beta's last one. */
const ACROSS = { beginNs: START_NS, endNs: START_NS + 600n * SECOND_NS }

/** tcpdump's own filter finds the same number. */
async function asTcpdump(seen: Seen): Promise<void> {
  assert.equal(
    await countByTcpdump(seen.body, 'udp dst port 53'),
    packetsOf('alpha').filter((p) => !p.isTagged && p.udpPort === 53).length,
  )
}

export const DOWNLOAD_CLAIMS: readonly Claim[] = [
  row('4.4-1', 'The body of every download is a PCAP.', ...onAll('', {})),
  row('4.4-2', 'It can be piped to a file or to a tool that reads PCAP.', {
    get: SINGLE,
    see: async (seen) => assert.equal(await countByTcpdump(seen.body), packetsOf('alpha').length),
  }),
  row(
    '4.4-3',
    'With Compression the stream is compressed by the named method.',
    {
      get: `${SINGLE}&Compression=zstd`,
      pcap: WHOLE,
      packed: 'zstd',
    },
    { get: `${RANGE}&Compression=6`, pcap: PART, packed: 'gzip' },
  ),
  row(
    '4.4-4',
    'FilterBPF is an expression of tcpdump; only packets that match come.',
    ...onTwo(BPF, { udpPort: 53 }),
    {
      get: `${SINGLE}&${BPF}`,
      see: asTcpdump,
    },
  ),
  row('4.4-5', 'FilterBPF may be left out.', { get: SINGLE, pcap: WHOLE }),
  row(
    '4.4-6',
    'With FilterBPFDecap=true the filter sees the packet inside.',
    ...onTwo(`${BPF}&FilterBPFDecap=true`, { udpPort: 53, isDecap: true }),
  ),
  row(
    '4.4-7',
    'With FilterBPFDecap=false, the default, it sees the packet as it was captured.',
    ...onTwo(`${BPF}&FilterBPFDecap=false`, { udpPort: 53 }),
    ...onTwo(BPF, { udpPort: 53 }),
  ),
  row(
    '4.4-8',
    'FilterFrame filters by attributes of the frame and may be left out.',
    ...onTwo(FRAME, PORT_1),
  ),
  row(
    '4.4-9',
    'TSMode says which timestamp each packet gets.',
    ...onTwo('TSMode=vendorB3550', { mode: 'vendorB3550' }),
  ),
  row('4.4-10', 'The default of TSMode is nic.', ...onTwo('', {}), ...onTwo('TSMode=nic', {})),
  row('4.4-11', 'The default of Compression is none.', ...onTwo('', {}), ...onTwo('Compression=none', {})),
  row(
    '4.4-12',
    'FilterBPF and TSMode apply to splittime too.',
    {
      get: `${SPLIT}&${BPF}`,
      pcap: packets('alpha', { ...IN_RANGE, udpPort: 53 }),
    },
    { get: `${SPLIT}&TSMode=vendorA7130`, pcap: packets('alpha', { ...IN_RANGE, mode: 'vendorA7130' }) },
  ),

  row('4.4.1-1', 'single gives one whole capture as one PCAP.', { get: SINGLE, pcap: WHOLE }),
  row('4.4.1-2', 'StreamName, the name of the capture, must be given.', {
    get: '/api/v1/pcap/single',
    problem: ['bad-parameter', 'StreamName'],
  }),
  row('4.4.1-3', 'Filters, TSMode and Compression may be given.', {
    get: `${SINGLE}&${BPF}&FilterBPFDecap=true&${FRAME}&TSMode=vendorA7130&Compression=1`,
    pcap: packets('alpha', { ...PORT_1, udpPort: 53, isDecap: true, mode: 'vendorA7130' }),
    packed: 'gzip',
  }),

  row('4.4.2-1', 'timerange gives the packets between a begin and an end.', { get: RANGE, pcap: PART }),
  row(
    '4.4.2-2',
    'The range may span several captures, which are merged.',
    {
      get: `${RANGE_PATH}?TSBegin=${ACROSS.beginNs}&TSEnd=${ACROSS.endNs}`,
      pcap: { of: ['alpha', 'beta'], query: {} },
    },
    {
      get: `${RANGE_PATH}?Device=*&TSBegin=${ACROSS.beginNs}&TSEnd=${ACROSS.endNs}`,
      pcap: { of: ['alpha', 'beta', 'gamma'], query: {} },
      out: FLEET_ONLY,
    },
  ),
  row('4.4.2-3', 'No name of a capture is given.', {
    get: `${RANGE}&StreamName=${ALPHA}`,
    head: { 'capfleet-ignored': 'StreamName' },
    pcap: PART,
  }),
  row('4.4.2-4', 'TSBegin must be given.', {
    get: `${RANGE_PATH}?TSEnd=2`,
    problem: ['bad-parameter', 'TSBegin'],
  }),
  row('4.4.2-5', 'TSEnd must be given.', {
    get: `${RANGE_PATH}?TSBegin=1`,
    problem: ['bad-parameter', 'TSEnd'],
  }),
  row('4.4.2-6', 'TSBegin and TSEnd are in the unit of TSUnit, which may be left out.', {
    get: `${RANGE_PATH}?${SECONDS}&TSUnit=sec`,
    pcap: PART,
  }),
  row('4.4.2-7', 'TSZone is the zone of the date-time form and may be left out.', {
    get: `${RANGE_PATH}?${LOCAL.utc}&${LOCAL_UNIT}&TSZone=UTC`,
    pcap: PART,
  }),
  row('4.4.2-8', 'TSMax bounds the time of packets that is given, in nanoseconds.', {
    get: `${RANGE}&TSMax=500000000`,
    pcap: packets('alpha', { ...IN_RANGE, tsMaxNs: 500_000_000n }),
  }),
  row(
    '4.4.2-9',
    'Slice is the most bytes that are kept of a packet, 1 to 12288.',
    ...[1, 60, 12_288].map((sliceBytes) => ({
      get: `${RANGE}&Slice=${sliceBytes}`,
      pcap: packets('alpha', { ...IN_RANGE, sliceBytes }),
    })),
    ...[0, 12_289].map((bytes) => ({
      get: `${RANGE}&Slice=${bytes}`,
      problem: ['bad-parameter', 'Slice'] as const,
    })),
  ),
  row('4.4.2-10', 'Filters, TSMode and Compression may be given.', {
    get: `${RANGE}&${BPF}&FilterBPFDecap=true&${FRAME}&TSMode=vendorA7130&Compression=zstd_fast`,
    pcap: packets('alpha', { ...IN_RANGE, ...PORT_1, udpPort: 53, isDecap: true, mode: 'vendorA7130' }),
    packed: 'zstd',
  }),
  row(
    '4.4.2-11',
    'TSUnit=nanos means epoch nanoseconds and is the default.',
    { get: `${RANGE}&TSUnit=nanos`, pcap: PART },
    { get: RANGE, pcap: PART },
  ),
  row('4.4.2-12', 'TSUnit=msecs means epoch milliseconds.', {
    get: `${RANGE_PATH}?TSBegin=${BEGIN_NS / 1_000_000n}&TSEnd=${END_NS / 1_000_000n}&TSUnit=msecs`,
    pcap: PART,
  }),
  row('4.4.2-13', 'TSUnit=sec means epoch seconds.', {
    get: `${RANGE_PATH}?${SECONDS}&TSUnit=sec`,
    pcap: PART,
  }),
  row('4.4.2-14', 'TSUnit=YYYYMMDD_HHMMSS means date and time of day.', {
    get: `${RANGE_PATH}?${LOCAL.tokyo}&${LOCAL_UNIT}&TSZone=Tokyo`,
    pcap: PART,
  }),
  row(
    '4.4.2-15',
    'Without TSUnit the unit is found, or it is nanoseconds.',
    { get: `${RANGE_PATH}?${SECONDS}`, pcap: PART },
    { get: RANGE, pcap: PART },
  ),
  row(
    '4.4.2-16',
    'Without TSZone the zone of the system counts.',
    {
      get: `${RANGE_PATH}?${LOCAL.tokyo}&${LOCAL_UNIT}`,
      pcap: PART,
      out: { fleet: 'the system is the gateway there; D8-4 has it' },
    },
    { get: `${RANGE_PATH}?${LOCAL.newYork}&${LOCAL_UNIT}`, pcap: PART, out: FLEET_ONLY },
  ),
  row(
    '4.4.2-17',
    'TSZone may be a city alone; a region and city, in which a slash is sent as it is, works too.',
    ...['Tokyo', 'Asia/Tokyo', 'Asia%2FTokyo'].map((zone) => ({
      get: `${RANGE_PATH}?${LOCAL.tokyo}&${LOCAL_UNIT}&TSZone=${zone}`,
      pcap: PART,
    })),
  ),
  row('4.4.2-18', 'The parameter is TSUnit; TSUint is a spelling of one listing.', {
    get: `${RANGE_PATH}?${SECONDS}&TSUint=sec`,
    pcap: PART,
  }),

  row('4.4.3-1', 'splittime gives the packets of one capture between a start and a stop.', {
    get: SPLIT,
    pcap: PART,
  }),
  ...(['StreamName', 'Start', 'Stop'] as const).map((name, index) =>
    row(`4.4.3-${index + 2}`, `${name} must be given.`, {
      get: SPLIT.replace(new RegExp(`${name}=[^&]*&?`), ''),
      problem: ['bad-parameter', name] as const,
    }),
  ),
  row(
    '4.4.3-5',
    'Start and Stop are epoch nanoseconds.',
    { get: SPLIT, pcap: PART },
    {
      get: `/api/v1/pcap/splittime?StreamName=${ALPHA}&Start=1790000001ULL&Stop=1790000003ULL`,
      see: (seen) => assert.equal(seen.body.length, 24),
    },
  ),
  row('4.4.3-6', 'FilterBPF is percent-encoded.', {
    get: `${SPLIT}&FilterBPF=${encodeURIComponent('udp dst port 53')}`,
    pcap: packets('alpha', { ...IN_RANGE, udpPort: 53 }),
  }),
  row('4.4.3-7', 'FilterFrame may be given.', {
    get: `${SPLIT}&${FRAME}`,
    pcap: packets('alpha', { ...IN_RANGE, ...PORT_1 }),
  }),
  row('4.4.3-8', 'TSMode may be given.', {
    get: `${SPLIT}&TSMode=vendorB3550`,
    pcap: packets('alpha', { ...IN_RANGE, mode: 'vendorB3550' }),
  }),
]
