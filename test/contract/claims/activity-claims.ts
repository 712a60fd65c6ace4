/** What docs/reference/activity-and-events.md says of the activity of devices, and of the events of the fleet. */
import assert from 'node:assert/strict'
import { type AnswerCheck, type Claim, heldBy, LIST, row, STRING } from '../claim.ts'
import { CAPTURES, packetsOf, ringNs, SECOND_NS, START_NS } from '../contract-captures.ts'
import { BEGIN_NS, END_NS, IN_RANGE, NANOS } from '../contract-queries.ts'
import type { Seen } from '../place.ts'

const ACTIVITY = 'test/appliance/answers/activity-report.test.ts'
const RECORDED = 'test/appliance/store/recorded-time.test.ts'
const EVENTS = 'test/src/gateway/routes/fleet/event-handlers.test.ts'
const READER = 'test/src/gateway/fleet/events/event-reader.test.ts'

/** On the device and below it by its own path; at the root by the fleet's path, where each device has an entry. */
function both(query: string, check: Omit<AnswerCheck, 'get' | 'out'>): readonly AnswerCheck[] {
  return [
    { get: `/api/v1/activity?${query}`, out: { fleet: 'the fleet has a path of its own' }, ...check },
    {
      get: ({ device }) => `/v1/activity?${query}&Device=${device}`,
      out: { device: 'the device has a path of its own', below: 'the device has a path of its own' },
      ...check,
    },
  ]
}

interface Told {
  readonly packets: readonly number[]
  readonly gaps: readonly { readonly fromNs: string; readonly toNs: string }[]
  readonly trimmed: readonly { readonly fromNs: string; readonly toNs: string }[]
}

/** The entry of the one device. */
function toldBy(seen: Seen): Told {
  const body = seen.json() as unknown as Told & { readonly devices?: readonly Told[] }
  return body.devices?.[0] ?? body
}

const sumOf = ({ packets }: Told) => packets.reduce((sum, count) => sum + count, 0)
const inRange = packetsOf('alpha').filter(({ ns }) => ns >= IN_RANGE.beginNs && ns < IN_RANGE.endNs).length
const AROUND = `TSBegin=${START_NS - SECOND_NS}&TSEnd=${START_NS + 120n * SECOND_NS}`
const lastOf = (name: 'alpha' | 'beta') => packetsOf(name).at(-1)?.ns ?? 0n

export const ACTIVITY_CLAIMS: readonly Claim[] = [
  row(
    'R-Activity-1',
    'Packets and bytes of a time range come in equal parts of bucketNs, the first of which begins at fromNs.',
    ...both(`${NANOS}&Buckets=4`, {
      members: { fromNs: String(BEGIN_NS), toNs: String(END_NS), bucketNs: '500000000' },
      see: (seen) => assert.equal(toldBy(seen).packets.length, 4),
    }),
  ),
  row(
    'R-Activity-2',
    'No packet is counted twice or left out.',
    ...[1, 2, 2_000].flatMap((buckets) =>
      both(`${NANOS}&Buckets=${buckets}`, { see: (seen) => assert.equal(sumOf(toldBy(seen)), inRange) }),
    ),
    ...both(AROUND, {
      see: (seen) => assert.equal(sumOf(toldBy(seen)), packetsOf('alpha').length + packetsOf('beta').length),
    }),
  ),
  row(
    'R-Activity-3',
    'gaps are times in which nothing was recorded.',
    ...both(AROUND, {
      see: (seen) => {
        const gaps = toldBy(seen).gaps.map(({ fromNs, toNs }) => [BigInt(fromNs), BigInt(toNs)])
        const betaNs = CAPTURES.beta.streams
          .flat()
          .reduce((least, { ns }) => (ns < least ? ns : least), END_NS * 2n)
        assert.ok(
          gaps.some(([from, to]) => from === lastOf('alpha') + 1n && to === betaNs),
          gaps.join(' '),
        )
      },
    }),
  ),
  row(
    'R-Activity-4',
    'trimmed is what was removed to make room.',
    ...both(`TSBegin=${ringNs(0)}&TSEnd=${ringNs(200)}`, {
      device: 'ring',
      see: (seen) => assert.ok(toldBy(seen).trimmed.some(({ fromNs }) => BigInt(fromNs) <= ringNs(1))),
    }),
  ),
  row(
    'R-Activity-5',
    'A viewer may ask, nobody else without credentials.',
    {
      get: `/api/v1/activity?${NANOS}`,
      as: 'viewer',
      members: { packets: LIST, bytes: LIST, bucketNs: STRING },
      out: { fleet: 'the fleet has a path of its own' },
    },
    {
      get: `/api/v1/activity?${NANOS}`,
      as: 'nobody',
      problem: ['unauthenticated'],
      out: { fleet: 'the fleet has a path of its own' },
    },
  ),
  heldBy(
    ACTIVITY,
    'a damaged index changes nothing; a segment that is known to have lost packets is named by its time',
    'R-Activity-6',
    'A damaged index changes nothing; the span of a segment that is known to have lost packets is told.',
  ),
  heldBy(
    RECORDED,
    'a capture that continued after its recorder was down has a gap from its last packet on',
    'R-Activity-7',
    'The gap of a recorder that was away begins behind the last packet before.',
  ),
  heldBy(
    EVENTS,
    'what is kept comes first, then what happens, with its device; each device has one listener',
    'R-Events of the fleet-1',
    'One stream has the events of all devices that the caller sees, each of which is listened to once.',
  ),
  heldBy(
    EVENTS,
    'a device that dies and returns is reported, as well as the gap in its events',
    'R-Events of the fleet-2',
    'The gateway tells of devices that go, come back, and cannot be heard.',
  ),
  heldBy(
    EVENTS,
    'the id of another gateway returns what is kept, after a gap',
    'R-Events of the fleet-3',
    'A client that comes back to another gateway is told what is kept there, behind a gap.',
  ),
  heldBy(
    READER,
    'a client that does not read is informed how many events it has missed, in their place',
    'R-Events of the fleet-4',
    'A client that is too slow loses the oldest events and is told how many.',
  ),
]
