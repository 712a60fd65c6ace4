/** Section 8 of the decisions, second half: values and members. */
import assert from 'node:assert/strict'
import { eventually } from '../../support/eventually.ts'
import { type Claim, FLEET_ONLY, INTEGER, packets, row, STRING } from '../claim.ts'
import { ALPHA, packetsOf, RING, ringNs, SECOND_NS } from '../contract-captures.ts'
import { BEGIN_NS, CAPTURE_STATUS, END_NS, IN_RANGE, RANGE, RANGE_PATH, SINGLE } from '../contract-queries.ts'
import type { Place } from '../place.ts'
import { splitsOf } from './legacy-claims.ts'
import { whileCapturing } from './operation-claims.ts'

type Entry = Readonly<Record<string, unknown>>

/** Rates follow what is stored. */
async function ratesOfStored(at: Place): Promise<void> {
  await whileCapturing(at, 'rated', async () => {
    const rateOf = async () => Number((await at.ask(CAPTURE_STATUS)).json().CapturePps)
    await eventually(async () => (await rateOf()) === 0, { message: 'nothing comes in' })
    let rate = 0
    let [arrivals, arrivedMs] = [0n, Number.NEGATIVE_INFINITY]
    const isRisen = async () => {
      // The same comes again if a busy machine has missed the rate of its 5 seconds.
      if (performance.now() - arrivedMs > 20_000) {
        arrivals += 1n
        arrivedMs = performance.now()
        at.stand.engineOf('east').count(0, {
          seenPackets: arrivals * 9_000n,
          filteredPackets: arrivals * 8_500n,
          storedPackets: arrivals * 500n,
          storedBytes: arrivals * 50_000n,
        })
      }
      rate = await rateOf()
      return rate > 0
    }
    await eventually(isRisen, { message: 'the rate rises' })
    assert.ok(rate <= 100, String(rate))
  })
}

export const AMENDED_VALUE_CLAIMS: readonly Claim[] = [
  row('D8-17', 'TSResolution=usec of a merge truncates behind the merge.', {
    get: `${RANGE}&Device=*&TSResolution=usec`,
    pcap: packets(['alpha', 'gamma'], { ...IN_RANGE, isMicroseconds: true }),
    out: FLEET_ONLY,
  }),
  row('D8-18', 'Splits have PacketCnt as a number with PacketCntExact, Date in nanoseconds and Type.', {
    act: async (at) => {
      for (const split of await splitsOf(at, `/stream/stime?StreamName=${ALPHA}&StreamView=split_1sec`)) {
        assert.deepEqual(
          [typeof split.PacketCnt, split.PacketCntExact, typeof split.Type],
          ['number', String(split.PacketCnt), 'string'],
        )
        assert.ok(Math.abs(Number(split.Date) - Number(split.StartTS)) < 1_000)
      }
    },
  }),
  row('D8-19', 'Date of stream/list is in nanoseconds.', {
    get: '/stream/list',
    see: (seen) => {
      const entry = (seen.json().List as readonly Entry[]).find(({ StreamName }) => StreamName === ALPHA)
      assert.equal(entry?.Date, Number(packetsOf('alpha')[0]?.ns))
    },
  }),
  row(
    'D8-20',
    'Uptimes are text such as 0D 1H 57M with the seconds beside them.',
    {
      get: '/sysmaster/stats_summary',
      members: {
        uptime: /^\d+D \d+H \d+M$/,
        uptime_s: INTEGER,
        cap0_link_uptime: STRING,
        cap0_link_uptime_s: INTEGER,
      },
    },
    { get: '/sysmaster/status', text: /^uptime, +\d+D \d+H \d+M\nuptime_s, +\d+$/m },
    {
      get: '/sysmaster/status',
      text: /^capture7_link_uptime, +\d+D \d+H \d+M\ncapture7_link_uptime_s, +\d+$/m,
    },
  ),
  row('D8-21', 'Rates are those of stored packets over the last 5 seconds.', { act: ratesOfStored }),
  row('D8-22', 'A TSEnd beyond what PCAP can carry means the end.', {
    get: `${RANGE_PATH}?TSBegin=${BEGIN_NS}&TSEnd=18446744073709551615&MaxPackets=7`,
    pcap: packets('alpha', { beginNs: BEGIN_NS, maxPackets: 7 }),
  }),
  row(
    'D8-23',
    'Slashes that follow one another in a path are one.',
    { get: `/${SINGLE}`, pcap: packets('alpha') },
    { get: '//stream//list' },
  ),
  row(
    'D8-24',
    'FilterRE=/text/i is understood, with the flags i, s and m.',
    {
      get: `${SINGLE}&FilterRE=${encodeURIComponent('/ALPHA PACKET [0-9]*7 /i')}`,
      pcap: packets('alpha', { pattern: /packet [0-9]*7 / }),
    },
    {
      get: `${SINGLE}&FilterRE=${encodeURIComponent('/packet [0-9]*7 /sm')}`,
      pcap: packets('alpha', { pattern: /packet [0-9]*7 / }),
    },
  ),
  row('D8-25', 'TSMax counts from the first packet of the range.', {
    get: `${RANGE_PATH}?TSBegin=${BEGIN_NS - 60n * SECOND_NS}&TSEnd=${END_NS}&TSMax=300000000`,
    pcap: packets('alpha', { endNs: END_NS, tsMaxNs: 300_000_000n }),
  }),
  row(
    'D8-26',
    'Device has 64 words and 4 KiB at most; StreamName 4 KiB.',
    { get: `${RANGE}&Device=${'east,'.repeat(65)}`, problem: ['bad-parameter', 'Device'], out: FLEET_ONLY },
    { get: `${RANGE}&Device=${'e'.repeat(4_097)}`, problem: ['bad-parameter', 'Device'], out: FLEET_ONLY },
    { get: `/api/v1/pcap/single?StreamName=${'x'.repeat(4_097)}`, problem: ['bad-parameter', 'StreamName'] },
  ),
  row('D8-27', 'A device knows After: so many bytes of the body are left out.', {
    get: `${SINGLE}&After=24`,
    head: { 'Capfleet-After': '24' },
    out: {
      below: 'it is the gateway’s of its devices, never a caller’s',
      fleet: 'it is the gateway’s of its devices, never a caller’s',
    },
    see: async (seen, at) => assert.ok(seen.body.equals((await at.ask(SINGLE)).body.subarray(24))),
  }),
  row('D8-28', 'At the root a capture of which nothing is left is 410 with the range, as on the device.', {
    get: `/api/v1/pcap/single?StreamName=${RING.gone}`,
    device: 'ring',
    problem: ['aged-out'],
    members: { detail: new RegExp(`${ringNs(-100)} to ${ringNs(-92) + 1n} ns`) },
  }),
]
