/** Sections 5, 6, 8 and 9 of the reference: credentials, telemetry, limits, versions. */
import assert from 'node:assert/strict'
import { type Claim, OBJECT, packets, row, STRING } from '../claim.ts'
import { ALPHA } from '../contract-captures.ts'
import { IN_RANGE, RANGE, SINGLE, SPLIT } from '../contract-queries.ts'
import { holdDownloads, refusesFifth, usesSlots } from '../slots.ts'

const SYSTEM_READS = ['time_current', 'version', 'port_stats', 'io_stats', 'status'].map(
  (name) => `/api/v1/system/${name}`,
)

export const LIMIT_CLAIMS: readonly Claim[] = [
  row(
    '5-1',
    'Downloads send HTTP Basic credentials.',
    ...[SINGLE, RANGE, SPLIT].flatMap((path) => [
      { get: path, as: 'user' as const },
      { get: path, as: 'nobody' as const, problem: ['unauthenticated'] as const },
    ]),
  ),
  row(
    '5-2',
    'The V1 system paths are asked without credentials.',
    ...SYSTEM_READS.map((path) => ({
      get: path,
      as: 'nobody' as const,
      out: {
        below: 'a setting of the gateway, off by default; D8-12 has it',
        fleet: 'a setting of the gateway, off by default; D8-12 has it',
      },
    })),
  ),

  row('6-1', 'The payload of the system status is that of the telemetry.', {
    act: async (at) => {
      const line = (await at.ask('/api/v1/system/telemetry?Count=1&Interval=1')).text.split('\n')[0] ?? ''
      const status = (await at.ask('/api/v1/system/status')).json()
      assert.deepEqual(Object.keys(JSON.parse(line)), Object.keys(status.temperature as object))
    },
  }),

  row(
    '8-1',
    'A device serves four V1 downloads at a time.',
    {
      act: async (at) => {
        await using held = await holdDownloads(at, 4)
        assert.equal(await at.appliance.slotsUsed(), 4)
        held.release()
        await usesSlots(at, 0)
      },
    },
    { act: refusesFifth },
  ),
  row(
    '8-2',
    'Slice is 1 to 12288 bytes.',
    { get: `${RANGE}&Slice=12288`, pcap: packets('alpha', { ...IN_RANGE, sliceBytes: 12_288 }) },
    { get: `${RANGE}&Slice=12289`, problem: ['bad-parameter', 'Slice'] },
  ),
  row(
    '8-3',
    'Levels of gzip are 1 to 9.',
    ...['0', '10'].map((level) => ({
      get: `${SINGLE}&Compression=${level}`,
      problem: ['bad-parameter', 'Compression'] as const,
    })),
  ),
  row(
    '8-4',
    'TSMax is the most time of packets, in nanoseconds.',
    {
      get: `${RANGE}&TSMax=1000000000`,
      pcap: packets('alpha', { ...IN_RANGE, tsMaxNs: 1_000_000_000n }),
    },
    { get: `${RANGE}&TSMax=0`, problem: ['bad-parameter', 'TSMax'] },
  ),
  row('8-5', 'A legacy time range spans two captures at most.', {
    get: '/pcap/timerange?TSBegin=1790000000&TSEnd=1790086400&TSMode=sec',
    problem: ['bad-parameter', 'TSEnd'],
  }),

  row(
    '9-1',
    'V1 paths are /api/v1/<operation>/<task>?<params>.',
    ...SYSTEM_READS.map((get) => ({ get })),
    { get: SINGLE },
    { get: RANGE },
    { get: SPLIT },
  ),
  row(
    '9-2',
    'The legacy paths stay.',
    { get: `/pcap/single?StreamName=${ALPHA}`, pcap: packets('alpha') },
    { get: '/stream/list' },
  ),
  row(
    '9-3',
    'V1 takes Compression and FilterBPF on its downloads.',
    ...[SINGLE, RANGE, SPLIT].map((path) => ({
      get: `${path}&Compression=fast&FilterBPF=udp+dst+port+53`,
      pcap: packets('alpha', { ...(path === SINGLE ? {} : IN_RANGE), udpPort: 53 }),
      packed: 'gzip' as const,
    })),
  ),
  row(
    '9-4',
    'The software version is told by system/version and by ver of the status.',
    {
      get: '/api/v1/system/version',
      members: { version: STRING, device: STRING, build: STRING },
      see: async (seen, at) => {
        const status = (await at.ask('/api/v1/system/status')).json()
        assert.equal(status.ver, seen.json().version)
      },
    },
    { get: '/api/v1/system/status', members: { other: OBJECT, ver: STRING } },
  ),
]
