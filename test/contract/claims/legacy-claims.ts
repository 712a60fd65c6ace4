/** Section 4.5 of the reference: the legacy paths. */
import assert from 'node:assert/strict'
import { readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { type Claim, LIST, packets, row } from '../claim.ts'
import { ALPHA, START_NS } from '../contract-captures.ts'
import { BEGIN_NS, END_NS, IN_RANGE, SECONDS, SINGLE, SPLIT_ENDS } from '../contract-queries.ts'
import type { Place } from '../place.ts'

const LEGACY_SINGLE = `/pcap/single?StreamName=${ALPHA}`
const LEGACY_RANGE = '/pcap/timerange'
const LEGACY_NANOS = `${LEGACY_RANGE}?TSBegin=${BEGIN_NS}&TSEnd=${END_NS}`
const LEGACY_SPLIT = `/pcap/splittime?${SPLIT_ENDS}`
const SIZE = `/stream/ssize?StreamName=${ALPHA}`
const TIME = `/stream/stime?StreamName=${ALPHA}`

const SIZE_VIEWS = ['10MB', '100MB', '250MB', '1GB', '2GB', '5GB', '10GB', '100GB', '1TB']
const TIME_VIEWS = '1sec 10sec 1min 10min 15min 1hour 2hour 4hour 6hour 8hour 12hour'.split(' ')

export type Split = Readonly<Record<string, unknown>> & { readonly PCAP: string }

export async function splitsOf(at: Place, target: string): Promise<readonly Split[]> {
  const answer = await at.ask(target)
  assert.equal(answer.status, 200, answer.text)
  return (answer.json() as { List: readonly Split[] }).List
}

/** The packets of all splits one after another. */
export async function downloadSplits(at: Place, splits: readonly Split[]): Promise<string[]> {
  const lines: string[] = []
  for (const { PCAP } of splits) {
    const answer = await at.ask(PCAP)
    assert.equal(answer.status, 200, `${PCAP}: ${answer.text.slice(0, 300)}`)
    lines.push(...recordLines(readPcap(answer.body).records))
  }
  return lines
}

async function areTheWhole(at: Place, target: string): Promise<void> {
  const whole = recordLines(readPcap((await at.ask(SINGLE)).body).records)
  assert.deepEqual(await downloadSplits(at, await splitsOf(at, target)), whole)
}

const IN_ALPHA = packets('alpha', IN_RANGE)
const epoch = (unitNs: bigint): string => `TSBegin=${BEGIN_NS / unitNs}&TSEnd=${END_NS / unitNs}`

export const LEGACY_CLAIMS: readonly Claim[] = [
  row('4.5-1', 'The legacy paths are there beside those of V1.', {
    get: LEGACY_SINGLE,
    pcap: packets('alpha'),
  }),
  row('4.5-2', 'stream/list lists all captures of the device.', {
    get: '/stream/list',
    members: { List: LIST },
    see: (seen) => assert.ok(seen.text.includes(ALPHA) && seen.text.includes('twin_')),
  }),
  row('4.5-3', 'ssize gives the splits of a capture by size.', {
    act: (at) => areTheWhole(at, `${SIZE}&StreamView=split_10MB`),
  }),
  row('4.5-4', 'stime gives the splits of a capture by time.', {
    act: (at) => areTheWhole(at, `${TIME}&StreamView=split_1sec`),
  }),
  row(
    '4.5-5',
    'Both take StreamName.',
    ...['ssize', 'stime'].map((name) => ({
      get: `/stream/${name}`,
      problem: ['bad-parameter', 'StreamName'] as const,
    })),
  ),
  row('4.5-6', 'single gives the whole capture as PCAP.', { get: LEGACY_SINGLE, pcap: packets('alpha') }),
  row('4.5-7', 'single takes FilterRE, a regular expression over the content of packets.', {
    get: `${LEGACY_SINGLE}&FilterRE=${encodeURIComponent('packet [0-9]*7 ')}`,
    pcap: packets('alpha', { pattern: /packet [0-9]*7 / }),
  }),
  row('4.5-8', 'single takes FilterBPF.', {
    get: `${LEGACY_SINGLE}&FilterBPF=udp+dst+port+443`,
    pcap: packets('alpha', { udpPort: 443 }),
  }),
  row(
    '4.5-9',
    'single takes Compression as fast, best or 1 to 9.',
    ...['fast', 'best', '1', '9'].map((word) => ({
      get: `${LEGACY_SINGLE}&Compression=${word}`,
      pcap: packets('alpha'),
      packed: 'gzip' as const,
    })),
  ),
  row('4.5-10', 'splittime gives the packets of a capture between Start and Stop, epoch nanoseconds.', {
    get: LEGACY_SPLIT,
    pcap: IN_ALPHA,
  }),
  ...(['StreamName', 'Start', 'Stop'] as const).map((name, index) =>
    row(`4.5-${index + 11}`, `${name} must be given to splittime.`, {
      get: LEGACY_SPLIT.replace(new RegExp(`${name}=[^&]*&?`), ''),
      problem: ['bad-parameter', name] as const,
    }),
  ),
  row('4.5-14', 'splittime takes FilterBPF.', {
    get: `${LEGACY_SPLIT}&FilterBPF=udp+dst+port+123`,
    pcap: packets('alpha', { ...IN_RANGE, udpPort: 123 }),
  }),
  row('4.5-15', 'splittime takes FilterPort, the number of the capture port.', {
    get: `${LEGACY_SPLIT}&FilterPort=2`,
    pcap: packets('alpha', { ...IN_RANGE, conditions: [{ field: 'capture.port', op: '==', values: [2] }] }),
  }),
  row('4.5-16', 'timerange gives the packets between TSBegin and TSEnd.', {
    get: LEGACY_NANOS,
    pcap: IN_ALPHA,
  }),
  ...(['TSBegin', 'TSEnd'] as const).map((name, index) =>
    row(`4.5-${index + 17}`, `${name} must be given to timerange.`, {
      get: LEGACY_NANOS.replace(new RegExp(`${name}=[^&]*&?`), ''),
      problem: ['bad-parameter', name] as const,
    }),
  ),
  row('4.5-19', 'timerange takes TSMax, nanoseconds of packets.', {
    get: `${LEGACY_NANOS}&TSMax=250000000`,
    pcap: packets('alpha', { ...IN_RANGE, tsMaxNs: 250_000_000n }),
  }),
  row('4.5-20', 'timerange takes no name of a capture and searches all.', {
    get: `${LEGACY_RANGE}?TSBegin=${START_NS}&TSEnd=${START_NS + 600_000_000_000n}`,
    pcap: packets(['alpha', 'beta']),
  }),
  row('4.5-21', 'timerange crosses two captures at most.', {
    get: `${LEGACY_RANGE}?TSBegin=${START_NS}&TSEnd=${START_NS + 86_400_000_000_000n}`,
    problem: ['bad-parameter', 'TSEnd'],
  }),
  ...SIZE_VIEWS.map((view, index) =>
    row(`4.5-${index + 22}`, `ssize takes split_${view}.`, {
      get: `${SIZE}&StreamView=split_${view}`,
      members: { Path: `/capture/${ALPHA}/split_${view}`, 'List.0.id': '0' },
    }),
  ),
  ...TIME_VIEWS.map((view, index) =>
    row(`4.5-${index + 31}`, `stime takes split_${view}.`, {
      get: `${TIME}&StreamView=split_${view}`,
      members: { Path: `/capture/${ALPHA}/split_${view}`, 'List.0.id': '0' },
    }),
  ),
  row('4.5-42', 'First splits are listed, then one of them is downloaded.', {
    act: async (at) => {
      const splits = await splitsOf(at, `${TIME}&StreamView=split_1sec`)
      const lines = await downloadSplits(at, splits.slice(1, 2))
      assert.equal(lines.length, splits[1]?.PacketCnt)
    },
  }),
  row(
    '4.5-43',
    'TSMode of timerange is the unit: nsec, the default, means nanoseconds.',
    { get: `${LEGACY_NANOS}&TSMode=nsec`, pcap: IN_ALPHA },
    { get: LEGACY_NANOS, pcap: IN_ALPHA },
  ),
  row('4.5-44', 'usec means microseconds.', {
    get: `${LEGACY_RANGE}?${epoch(1_000n)}&TSMode=usec`,
    pcap: IN_ALPHA,
  }),
  row('4.5-45', 'msec means milliseconds.', {
    get: `${LEGACY_RANGE}?${epoch(1_000_000n)}&TSMode=msec`,
    pcap: IN_ALPHA,
  }),
  row('4.5-46', 'sec means seconds.', { get: `${LEGACY_RANGE}?${SECONDS}&TSMode=sec`, pcap: IN_ALPHA }),
]
