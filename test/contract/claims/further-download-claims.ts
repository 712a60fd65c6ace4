/** Section 4 of the decisions: parameters of downloads beyond the reference. */
import assert from 'node:assert/strict'
import { type Claim, heldBy, packets, row, THROUGH_GATEWAY } from '../claim.ts'
import { BIG, packetsOf, SECOND_NS } from '../contract-captures.ts'
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
import type { Place } from '../place.ts'
import { HELD, holdDownloads, refusesFifth, usesSlots } from '../slots.ts'

const PART = packets('alpha', IN_RANGE)
const epoch = (unitNs: bigint): string => `TSBegin=${BEGIN_NS / unitNs}&TSEnd=${END_NS / unitNs}`

/** Without TSUnit the number of digits decides. */
const detected = (unitNs: bigint, unit: string) => ({
  get: `${RANGE_PATH}?${epoch(unitNs)}`,
  pcap: PART,
  head: { 'Capfleet-TS-Unit': unit },
})

/** The earliest and the latest time whose unit the digits imply; west holds packets of one link type only. */
const earliestAndLatest = (unitNs: bigint, unit: string) => ({
  get: `${RANGE_PATH}?TSBegin=${(631_152_000n * SECOND_NS) / unitNs}&TSEnd=${(4_294_967_296n * SECOND_NS) / unitNs}&MaxPackets=1`,
  device: 'west' as const,
  head: { 'Capfleet-TS-Unit': unit },
})

/** A number that is more likely something else, such as 202611020901 for a date. */
const improbable = (text: string) => ({
  get: `${RANGE_PATH}?TSBegin=${text}&TSEnd=now`,
  problem: ['bad-parameter', 'TSBegin'] as const,
})

const relative = (text: string) => ({
  get: `${RANGE_PATH}?TSBegin=${text}&TSEnd=now`,
  see: (seen: { body: Buffer }) => assert.equal(seen.body.length, 24),
})

const millisecond = 1_000_000n
const RFC3339 = `TSBegin=2026-09-21T14:13:21Z&TSEnd=2026-09-21T16:13:23%2B02:00`
/** The same range, as other programs print it. */
const PRINTED_ENDS = [
  [`${BEGIN_NS / SECOND_NS}.000000`, `@${END_NS / SECOND_NS}`],
  ['2026-09-21T14:13:21.000000%2B0000', '2026-09-21T14:13:23.000000+0000'],
  ['2026-09-21 14:13:21,0Z', '%2B2s'],
  ['Sep 21, 2026 14:13:21.000000000 UTC', 'Mon Sep 21 14:13:23 UTC 2026'],
  ['2026-09-21T14:13:21&TSZone=UTC', '2026-09-21 14:13:23'],
] as const

/** The same packets on each download path, except for those that a limit leaves out. */
const sliced = [SINGLE, RANGE, SPLIT].map((path) => ({
  get: `${path}&Slice=80`,
  pcap: packets('alpha', { ...(path === SINGLE ? {} : IN_RANGE), sliceBytes: 80 }),
}))

/** Legacy and V1 downloads together. */
async function sharesSlots(at: Place): Promise<void> {
  await using held = await holdDownloads(at, 2)
  for (let index = 0; index < 2; index++) {
    await held.open(`/pcap/single?StreamName=${BIG}&rand=${index}`)
  }
  await usesSlots(at, 4)
  const fifth = await at.ask(`/pcap/single?StreamName=${BIG}&Wait=0`, { as: 'user' })
  assert.equal(fifth.status, 503)
}

async function isFreeWithinASecond(at: Place): Promise<void> {
  await using held = await holdDownloads(at, 4)
  held.release()
  await usesSlots(at, 0)
}

/** A fifth download that waits is served when one of the four leaves. */
async function waits(at: Place): Promise<void> {
  await using held = await holdDownloads(at, 4)
  const fifth = at.open(`${HELD}&Wait=600`, { as: 'user' })
  // It is in line when a sixth, which does not wait, is rejected.
  assert.equal((await at.ask(`${HELD}&Wait=0`, { as: 'user' })).status, 503)
  held.release()
  {
    using served = await fifth
    assert.equal(served.response.statusCode, 200)
  }
  await usesSlots(at, 0)
}

/** Enabled readers with their names, from the status as a user sees it. */
async function tellsReaders(at: Place): Promise<void> {
  await using _held = await holdDownloads(at, 2)
  const { cat } = (await at.ask('/api/v1/system/status')).json() as { cat: Readonly<Record<string, unknown>> }
  assert.equal(cat.cat_EnableCnt, 2)
  const enabled = [0, 1, 2, 3, 4, 5, 6, 7].filter((slot) => cat[`cat_${slot}_Enable`] === true)
  assert.equal(enabled.length, 2)
  for (const slot of enabled) {
    assert.deepEqual([cat[`cat_${slot}_StreamName`], cat[`cat_${slot}_Mode`]], [BIG, 'single'])
  }
}

/** Encoded like curl's --data-urlencode. */
const frame = (text: string) => `${SINGLE}&FilterFrame=${encodeURIComponent(text)}`
const NOT_1 = [{ field: 'capture.port', op: '!=', values: [1] }] as const

export const FURTHER_DOWNLOAD_CLAIMS: readonly Claim[] = [
  row('D4-1', 'Without TSUnit times are nanoseconds.', {
    get: RANGE,
    pcap: PART,
    head: { 'Capfleet-TS-Unit': 'nanos' },
  }),
  row(
    'D4-2',
    'A shorter number is read by its digits: 9 to 11 seconds, 12 to 14 milliseconds, 15 to 17 microseconds.',
    detected(SECOND_NS, 'sec'),
    detected(millisecond, 'msecs'),
    detected(1_000n, 'usecs'),
    earliestAndLatest(SECOND_NS, 'sec'),
    earliestAndLatest(millisecond, 'msecs'),
    earliestAndLatest(1_000n, 'usecs'),
    earliestAndLatest(1n, 'nanos'),
    {
      get: `${RANGE_PATH}?TSBegin=1&TSEnd=99999999&MaxPackets=1`,
      device: 'west' as const,
      head: { 'Capfleet-TS-Unit': 'nanos' },
    },
    ...['100000000', '202611020901', '20261102090100', '100000000000000'].map(improbable),
  ),
  row('D4-3', 'Capfleet-TS-Unit says which unit was used.', {
    get: `${RANGE_PATH}?${SECONDS}&TSUnit=sec`,
    head: { 'Capfleet-TS-Unit': 'sec' },
  }),
  row('D4-4', 'TSUint is another spelling of TSUnit.', {
    get: `${RANGE_PATH}?${SECONDS}&TSUint=sec`,
    pcap: PART,
  }),
  row(
    'D4-5',
    'TSMode of a V1 time range may be a unit.',
    ...(
      [
        ['nsec', 1n],
        ['nanos', 1n],
        ['usec', 1_000n],
        ['msec', millisecond],
        ['msecs', millisecond],
        ['sec', SECOND_NS],
      ] as const
    ).map(([word, unitNs]) => ({
      get: `${RANGE_PATH}?${epoch(unitNs)}&TSMode=${word}`,
      pcap: PART,
    })),
  ),
  row('D4-6', 'With TSUnit and such a TSMode, TSUnit wins.', {
    get: `${RANGE_PATH}?${SECONDS}&TSMode=nsec&TSUnit=sec`,
    pcap: PART,
  }),
  row('D4-7', 'YYYYMMDD_HHMMSS is in TSZone, or in the zone of the system.', {
    get: `${RANGE_PATH}?${LOCAL.utc}&${LOCAL_UNIT}&TSZone=UTC`,
    pcap: PART,
  }),
  row('D4-8', 'A local time that the clock skips is 400.', {
    get: `${RANGE_PATH}?TSBegin=20260308_023000&TSEnd=20260309_000000&TSZone=New_York`,
    problem: ['bad-parameter', 'TSBegin'],
  }),
  row('D4-9', 'One that the clock shows twice is the first for a begin and the last for an end.', {
    get: `${RANGE_PATH}?TSBegin=20261101_013000&TSEnd=20261101_013000&TSZone=New_York`,
    head: { 'Content-Disposition': /_20261101T053000Z-20261101T063000Z\.pcap"$/ },
  }),
  row(
    'D4-10',
    'A city is the last part of a name of the zone database in any case, also a known alias; a full name works.',
    ...['Singapore', 'singapore', 'Asia/Singapore'].map((zone) => ({
      get: `${RANGE_PATH}?${LOCAL.singapore}&TSZone=${zone}`,
      pcap: PART,
    })),
    ...['Kolkata', 'Calcutta', 'Kyiv', 'Kiev'].map((zone) => ({
      get: `${RANGE_PATH}?${LOCAL.utc}&TSZone=${zone}`,
    })),
  ),
  row(
    'D4-11',
    'Times may be relative: -15m, now.',
    ...['-15m', '-30s', '-2h', '-1d', 'now-6h', '-1w'].map(relative),
  ),
  row(
    'D4-12',
    'Times may be as in RFC 3339.',
    { get: `${RANGE_PATH}?${RFC3339}`, pcap: PART },
    ...PRINTED_ENDS.map(([begin, end]) => ({
      get: `${RANGE_PATH}?TSBegin=${begin.replaceAll(' ', '%20')}&TSEnd=${end.replaceAll(' ', '%20')}`,
      pcap: PART,
    })),
    { get: `${RANGE_PATH}?TSBegin=21/09/2026&TSEnd=now`, problem: ['bad-parameter', 'TSBegin'] as const },
  ),
  row('D4-13', 'from and to are epoch milliseconds.', {
    get: `${RANGE_PATH}?from=${BEGIN_NS / millisecond}&to=${END_NS / millisecond}`,
    pcap: PART,
  }),
  row(
    'D4-14',
    'MaxBytes and MaxPackets end a download cleanly.',
    ...[SINGLE, RANGE, SPLIT].flatMap((path) => {
      const range = path === SINGLE ? {} : IN_RANGE
      return [
        { get: `${path}&MaxPackets=5`, pcap: packets('alpha', { ...range, maxPackets: 5 }) },
        { get: `${path}&MaxBytes=5000`, pcap: packets('alpha', { ...range, maxBytes: 5_000 }) },
      ]
    }),
  ),
  row(
    'D4-15',
    'The end then says that it is truncated and the time of the next packet.',
    {
      get: `${SINGLE}&MaxPackets=5`,
      see: ({ trailers }) =>
        assert.deepEqual(
          [trailers['capfleet-truncated'], trailers['capfleet-next-ns']],
          ['1', String(packetsOf('alpha')[5]?.ns)],
        ),
    },
    {
      get: `${SINGLE}&MaxPackets=5`,
      out: THROUGH_GATEWAY,
      see: async ({ headers }, at) => {
        const receipt = await at.receiptOf(headers)
        assert.deepEqual([receipt.status, receipt.nextNs], ['truncated', String(packetsOf('alpha')[5]?.ns)])
      },
    },
  ),
  row('D4-16', 'Slice works on every V1 download.', ...sliced),
  {
    ...heldBy(
      'test/appliance/downloads/followed-download.test.ts',
      'packets come as they are flushed, and the answer ends when its range is over',
      'D4-17',
      'Follow=1 streams a range that ends in the future as its packets are flushed.',
    ),
    checks: [{ get: `${RANGE}&Follow=1`, pcap: PART }],
  },
  row('D4-18', 'The fifth download on a device is 503 with Retry-After.', { act: refusesFifth }),
  row('D4-19', 'The refusal tells the readers.', {
    out: { below: 'the gateway has a queue of its own', fleet: 'the gateway has a queue of its own' },
    act: async (at) => {
      await using _held = await holdDownloads(at, 4)
      assert.equal(((await at.ask(HELD)).json().readers as unknown[]).length, 4)
    },
  }),
  row(
    'D4-20',
    'Wait holds a download instead, 0 to 600 seconds.',
    { act: waits },
    { get: `${SINGLE}&Wait=601`, problem: ['bad-parameter', 'Wait'] },
    { get: `${SINGLE}&Wait=600`, pcap: packets('alpha') },
  ),
  row('D4-21', 'Legacy and V1 downloads share the four places.', { act: sharesSlots }),
  row('D4-22', 'A place is free within a second of the disconnect.', { act: isFreeWithinASecond }),
  row('D4-23', 'cat_N of the status tell of the running downloads, cat_EnableCnt is their number.', {
    act: tellsReaders,
  }),
  row(
    'D4-24',
    'FilterFrame takes =, ==, !=, lists and "and", percent-encoded.',
    ...['capture.port!=1', 'capture.port != 1 and capture.port!=1'].map((text) => ({
      get: frame(text),
      pcap: packets('alpha', { conditions: NOT_1 }),
    })),
    ...['capture.port=0,2', 'capture.port==0,2'].map((text) => ({
      get: frame(text),
      pcap: packets('alpha', { conditions: [{ field: 'capture.port', op: '==', values: [0, 2] }] }),
    })),
  ),
  row(
    'D4-25',
    'tsModeAliases of the configuration add words to TSMode.',
    {
      get: `${SINGLE}&TSMode=footer`,
      pcap: packets('alpha', { mode: 'vendorA7130' }),
      out: { fleet: 'the aliases are the device’s; the gateway has its own' },
    },
    {
      get: `${SINGLE}&TSMode=nosuch`,
      problem: ['bad-parameter', 'TSMode'],
    },
  ),
  heldBy(
    'test/e2e/access/forced-filter.test.ts',
    'holds for whatever is asked of downloads',
    'D4-26',
    'A user may carry a filter that is added to every other one.',
  ),
]
