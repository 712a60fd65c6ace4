/** Section 3 of the decisions: names, schedules, rolls, states. */
import assert from 'node:assert/strict'
import { type Claim, heldBy, LIST, packets, row } from '../claim.ts'
import { ALPHA, EAST_ZONE, RING } from '../contract-captures.ts'
import { CAPTURE_STATUS, START_CAPTURE } from '../contract-queries.ts'
import { whileCapturing } from './operation-claims.ts'

const CONTROL = 'test/appliance/recorder/capture/capture-control.test.ts'
const KEEPER = 'test/appliance/recorder/capture/capture-keeper.test.ts'
const RETENTION = 'test/appliance/recorder/retention/retention.test.ts'

export const NAME_CLAIMS: readonly Claim[] = [
  row(
    'D3-1',
    'A base name is 1 to 64 letters, digits, dots, underscores and hyphens, and begins with a letter or digit.',
    ...['-x', '.x', 'a%20b', 'a/b', 'x'.repeat(65)].map((name) => ({
      get: `${START_CAPTURE}?StreamName=${name}`,
      problem: ['bad-parameter', 'StreamName'] as const,
    })),
    { act: (at) => whileCapturing(at, `9.${'x'.repeat(62)}`) },
  ),
  row('D3-2', 'The full name has date and time of the start in the zone of the device.', {
    act: async (at) => {
      const inZone = () =>
        new Intl.DateTimeFormat('sv-SE', { timeZone: EAST_ZONE, dateStyle: 'short', timeStyle: 'short' })
          .format(new Date())
          .replace(' ', '_')
          .replaceAll(/[-:]/g, '')
      const before = inZone()
      const name = await whileCapturing(at, `zoned${at.route}`)
      assert.ok(
        [before, inZone()].some((text) => name.startsWith(`zoned${at.route}_${text}`)),
        `${name}: ${before}`,
      )
    },
  }),
  row('D3-3', 'A second start in a minute appends the seconds, then a number.', {
    act: async (at) => {
      const names: string[] = []
      for (let index = 0; index < 3; index++) names.push(await whileCapturing(at, `again${at.route}`))
      assert.equal(new Set(names).size, 3)
      assert.ok(
        names.some((name) => /_\d{8}_\d{4}_\d{2}(_\d+)?$/.test(name)),
        names.join(' '),
      )
    },
  }),
  row(
    'D3-4',
    'Names are looked up, never joined to a path.',
    ...['..', '../alpha', '%2e%2e%2fusers.yaml'].map((name) => ({
      get: `/api/v1/pcap/single?StreamName=${name}`,
      problem: ['unknown-capture', 'StreamName'] as const,
    })),
  ),
  row(
    'D3-5',
    'Downloads take the full name, or the base name for its newest capture.',
    { get: `/api/v1/pcap/single?StreamName=${ALPHA}`, pcap: packets('alpha') },
    { get: '/api/v1/pcap/single?StreamName=alpha', pcap: packets('alpha') },
  ),
  row('D3-6', 'A delete takes the full name only.', {
    get: '/pcap/del?StreamName=beta',
    problem: ['unknown-capture'],
  }),
  row(
    'D3-7',
    'The schedule is read at /api/v1/capture/schedule: rows with name, start, stop, days and zone.',
    {
      get: '/api/v1/capture/schedule',
      device: 'west',
      members: {
        List: LIST,
        'List.0.Name': 'always',
        'List.0.Start': '00:00:00',
        'List.0.Stop': '24:00:00',
        'List.0.Days': LIST,
        'List.0.Zone': 'UTC',
      },
    },
  ),
  row('D3-8', 'A row from 00:00:00 to 24:00:00 on all days is 24/7.', {
    get: CAPTURE_STATUS,
    device: 'west',
    members: { Scheduled: true, ScheduleName: 'always', CaptureEnable: 'true' },
  }),
  heldBy(
    KEEPER,
    'every n bytes of each capture',
    'D3-9',
    'A roll at a time of day, every so many seconds or bytes makes a new name.',
  ),
  heldBy(
    CONTROL,
    'a roll continues under a new name and closes the old capture; each has its own counts',
    'D3-10',
    'No packet is lost or twice at a roll.',
  ),
  row('D3-11', 'The capture process is idle, starting, running, rolling, stopping or in error.', {
    get: CAPTURE_STATUS,
    members: { State: /^(idle|starting|running|rolling|stopping|error)$/ },
  }),
  row(
    'D3-12',
    'A capture is active, closed, trimmed, aged out or deleted.',
    {
      device: 'ring',
      act: async (at) => {
        const list = (await at.ask('/stream/list')).json().List as readonly Readonly<
          Record<string, unknown>
        >[]
        assert.deepEqual(
          list.map(({ StreamName, State }) => [StreamName, State]),
          [
            [RING.young, 'closed'],
            [RING.trimmed, 'trimmed'],
          ],
        )
        assert.equal((await at.ask(`/api/v1/pcap/single?StreamName=${RING.gone}`)).json().code, 'aged-out')
      },
    },
    {
      act: (at) =>
        whileCapturing(at, 'listed', async (fullName) => {
          const list = (await at.ask('/stream/list')).json().List as readonly Readonly<
            Record<string, unknown>
          >[]
          assert.equal(list.find(({ StreamName }) => StreamName === fullName)?.State, 'active')
        }),
    },
  ),
  row('D3-13', 'What is deleted for room leaves an event.', {
    device: 'ring',
    act: async (at) => {
      using answer = await at.open('/api/v1/system/events?LastEventID=0')
      const { response } = answer
      let text = ''
      for await (const chunk of response.setEncoding('utf8')) {
        text += chunk
        if (text.includes('event: capture-aged-out') && text.includes('event: segment-removed')) break
      }
      assert.ok(text.includes(RING.gone))
    },
  }),
  heldBy(
    RETENTION,
    'the oldest segments are removed, as few as necessary, and all clients are notified',
    'D3-14',
    'The store is a ring: with onFull=roll the oldest goes.',
  ),
  heldBy(
    'test/appliance/recorder.test.ts',
    'onFull "stop" ends a running capture properly at the limit, and continues it when there is room',
    'D3-15',
    'With onFull=stop nothing goes and nothing new is taken.',
  ),
]
