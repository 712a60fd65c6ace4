/** Section 7 of the decisions: what scripts for existing appliances rely on. */
import assert from 'node:assert/strict'
import { eventually } from '../../support/eventually.ts'
import { httpGet } from '../../support/http-get.ts'
import { readPcap, recordLines } from '../../support/packets/pcap-records.ts'
import { shellPipeline } from '../../support/processes/shell-pipeline.ts'
import { countByTcpdump } from '../check-claim.ts'
import { BOOLEAN, type Claim, heldBy, packets, row } from '../claim.ts'
import { ALPHA, packetsOf } from '../contract-captures.ts'
import {
  BEGIN_NS,
  CAPTURE_STATUS,
  END_NS,
  IN_RANGE,
  LOCAL,
  RANGE_PATH,
  SECONDS,
  SINGLE,
} from '../contract-queries.ts'
import type { Place } from '../place.ts'
import { HELD, holdDownloads, refusesFifth, usesSlots } from '../slots.ts'
import { downloadSplits, splitsOf } from './legacy-claims.ts'
import { whileCapturing } from './operation-claims.ts'

/** Answers with 503 so far, of the program that the route asks. */
async function refusals({ base }: Place): Promise<number> {
  const { body } = await httpGet(`${new URL(base).origin}/metrics`)
  return Number(/^capfleet_http_requests_total\{.*status="503".*\} (\d+)$/m.exec(body.toString())?.[1] ?? 0)
}

const PART = packets('alpha', IN_RANGE)
const COMPATIBILITY = 'test/appliance/compatibility.test.ts'

export const COMPATIBILITY_CLAIMS: readonly Claim[] = [
  row('D7-1', 'time_current is 19 digits and a line end.', {
    get: '/api/v1/system/time_current',
    text: /^\d{19}\n$/,
  }),
  row(
    'D7-2',
    'CaptureEnable is a string, Status a boolean, and the phrases of success are there.',
    {
      get: CAPTURE_STATUS,
      members: { CaptureEnable: /^(true|false)$/, Status: BOOLEAN },
    },
    {
      act: (at) =>
        whileCapturing(at, 'phrases', async () => {
          assert.equal((await at.ask(CAPTURE_STATUS)).json().CaptureEnable, 'true')
        }),
    },
  ),
  row('D7-3', 'ULL, &&, a trailing & and rand= are accepted.', {
    get: `/pcap/splittime?StreamName=${ALPHA}&Start=${BEGIN_NS}ULL&Stop=${END_NS}ULL&&rand=0.5&`,
    pcap: PART,
  }),
  row('D7-4', 'Adjacent splits put together are the single download.', {
    act: async (at) => {
      const whole = recordLines(readPcap((await at.ask(SINGLE)).body).records)
      for (const view of ['stime?StreamView=split_1sec', 'ssize?StreamView=split_10MB'])
        assert.deepEqual(
          await downloadSplits(at, await splitsOf(at, `/stream/${view}&StreamName=${ALPHA}`)),
          whole,
          view,
        )
    },
  }),
  row('D7-5', 'Nanoseconds are exact strings.', {
    get: '/stream/list',
    see: (seen) => assert.ok(seen.text.includes(`"EndTS":"${(packetsOf('alpha').at(-1)?.ns ?? 0n) + 1n}"`)),
  }),
  row(
    'D7-6',
    'TSMode=sec of a V1 time range is a unit, and TSUint works.',
    ...['TSMode', 'TSUint'].map((name) => ({ get: `${RANGE_PATH}?${SECONDS}&${name}=sec`, pcap: PART })),
  ),
  row(
    'D7-7',
    'Asia/Singapore, Singapore and singapore are equal; West is ambiguous.',
    ...['Asia/Singapore', 'Singapore', 'singapore'].map((zone) => ({
      get: `${RANGE_PATH}?${LOCAL.singapore}&TSZone=${zone}`,
      pcap: PART,
    })),
    { get: `${RANGE_PATH}?${LOCAL.singapore}&TSZone=West`, problem: ['ambiguous-timezone', 'TSZone'] },
  ),
  row('D7-8', 'FilterFrame takes its forms as curl encodes them.', {
    act: async (at) => {
      const { stdout } = await shellPipeline(
        'curl -fsS -u "$USER" -G --data-urlencode "FilterFrame=$FILTER" "$URL" | tcpdump -nr - 2>/dev/null | wc -l',
        {
          USER: at.credentialsOf('user'),
          URL: at.urlOf(SINGLE),
          FILTER: 'capture.port == 0, 1 and capture.port != 1',
        },
      )
      assert.equal(Number(stdout), packetsOf('alpha').filter(({ port }) => port === 0).length)
    },
  }),
  row('D7-9', 'An empty result is 24 bytes, and tcpdump exits with 0.', {
    get: `${RANGE_PATH}?TSBegin=1&TSEnd=2&TSUnit=sec`,
    see: async (seen) => {
      assert.equal(seen.body.length, 24)
      assert.equal(await countByTcpdump(seen.body), 0)
    },
  }),
  heldBy(
    COMPATIBILITY,
    '10. a cut stream: curl fails and tcpdump exits 1',
    'D7-10',
    'Of a cut stream curl exits with 56 (the reset of D1-19), behind nginx with 18, and tcpdump with 1.',
  ),
  row(
    'D7-11',
    'The fifth download is 503, then curl --retry has it; a place is free within a second.',
    { act: refusesFifth },
    {
      act: async (at) => {
        await using held = await holdDownloads(at, 4)
        const before = await refusals(at)
        const retried = shellPipeline(
          'curl -fsS --retry 3 -u "$USER" "$URL" | tcpdump -nr - 2>/dev/null | wc -l',
          {
            USER: at.credentialsOf('user'),
            URL: at.urlOf(`${HELD}&Slice=60&Wait=0`),
          },
        )
        await eventually(async () => (await refusals(at)) > before, { message: 'curl was refused' })
        held.release()
        const { stdout, codes } = await retried
        assert.deepEqual([Number(stdout), codes], [65_536, [0, 0, 0]])
        await usesSlots(at, 0)
      },
    },
  ),
  row('D7-12', 'A second start in a minute gets the seconds too.', {
    act: async (at) => {
      const names: string[] = []
      for (let index = 0; index < 3; index++) names.push(await whileCapturing(at, `minute${at.route}`))
      assert.ok(
        names.some((name) => /_\d{8}_\d{4}_\d{2}/.test(name)),
        names.join(' '),
      )
    },
  }),
]
