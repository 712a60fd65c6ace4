/** Section 2 of the decisions: bodies of operation, management and lists. */
import assert from 'node:assert/strict'
import { checkMembers } from '../check-claim.ts'
import { BOOLEAN, type Claim, heldBy, INTEGER, NOT_FLEET, NUMBER, row, STRING } from '../claim.ts'
import { BIG, ringNs } from '../contract-captures.ts'
import { CAPTURE_STATUS, START_CAPTURE, STOP_CAPTURE } from '../contract-queries.ts'
import type { Place } from '../place.ts'
import { holdDownloads } from '../slots.ts'
import { deleteSmall, whileCapturing } from './operation-claims.ts'

/** The format of times in C. */
const CTIME = '[A-Z][a-z]{2} [A-Z][a-z]{2} [ \\d]\\d \\d{2}:\\d{2}:\\d{2} \\d{4}'
const NS = /^\d{19}$/
const PORT_NUMBERS = [0, 1, 2, 3, 4, 5, 6, 7]
const DISKS = ['os0', 'ssd0', 'ssd7', 'par0']
const CLOCKS = ['gm', 'sys', 'isys', 'pps', 'ntp']
const all = (names: readonly string[], type: unknown) => Object.fromEntries(names.map((name) => [name, type]))

async function csvOf(at: Place, query = ''): Promise<[string, string][]> {
  const { text } = await at.ask(`/sysmaster/status${query}`)
  return text
    .trimEnd()
    .split('\n')
    .map((line) => /^([^,]+),\s*(.*)$/.exec(line)?.slice(1) as [string, string])
}

const CSV_KEYS = [
  'uptime',
  ...['received', 'dropped', 'errors', 'captured'].map((name) => `packets_${name}`),
  ...['captured', 'pending', 'disk', 'overflow', 'overflow_now'].map((name) => `bytes_${name}`),
  ...PORT_NUMBERS.flatMap((port) =>
    ['link', 'link_uptime', 'link_speed'].map((name) => `capture${port}_${name}`),
  ),
  ...['bytes', 'packets', 'bps', 'pps', 'name', 'active'].map((name) => `capture_${name}`),
]

const TIMES = ['StartTS', 'LastPacketTS', 'FlushedTS']

export const BODY_CLAIMS: readonly Claim[] = [
  row(
    'D2-1',
    'time_current is text of 19 digits and a line end.',
    { get: '/api/v1/system/time_current', text: /^\d{19}\n$/ },
    {
      get: '/api/v1/system/time_current',
      head: { 'Content-Type': /^text\/plain/ },
      out: NOT_FLEET,
    },
  ),
  row('D2-2', 'It is JSON for who accepts application/json.', {
    get: '/api/v1/system/time_current',
    headers: { accept: 'application/json' },
    members: { time_current: NS },
    out: NOT_FLEET,
  }),
  row(
    'D2-3',
    'capture_start answers Status, Str with the time and the name as sent, full name, start and state.',
    {
      act: async (at) => {
        await at.appliance.get(STOP_CAPTURE)
        const body = (await at.ask(`${START_CAPTURE}?StreamName=phrase`)).json()
        checkMembers(body, {
          Status: true,
          Str: new RegExp(`^\\[${CTIME}\\] successfully started capture \\[phrase\\]$`),
          StreamName: /^phrase_\d{8}_\d{4}/,
          StartTS: NS,
          State: 'running',
        })
        await at.ask(STOP_CAPTURE)
      },
    },
  ),
  row('D2-4', 'Without StreamName it starts the configured default name.', {
    act: async (at) => {
      await at.appliance.get(STOP_CAPTURE)
      const body = (await at.ask(START_CAPTURE)).json()
      checkMembers(body, { StreamName: /^capture_\d{8}_\d{4}/ })
      await at.ask(STOP_CAPTURE)
    },
  }),
  row('D2-5', 'capture_stop answers the same, with the stop, packets and bytes.', {
    act: async (at) => {
      await at.appliance.get(STOP_CAPTURE)
      await at.ask(`${START_CAPTURE}?StreamName=phrase`)
      checkMembers((await at.ask(STOP_CAPTURE)).json(), {
        Status: true,
        Str: new RegExp(`^\\[${CTIME}\\] successfully stopped capture`),
        StreamName: /^phrase_/,
        StopTS: NS,
        CapturePacket: INTEGER,
        CaptureByte: INTEGER,
      })
    },
  }),
  row('D2-6', 'When only a scheduled capture runs, a stop is 409 and names the row and when it ends.', {
    get: STOP_CAPTURE,
    device: 'west',
    problem: ['capture-scheduled'],
    members: { Status: false, Str: /always/ },
  }),
  {
    ...heldBy(
      'test/appliance/capture-figures.test.ts',
      'stopping a scheduled capture is 409 unless it is until its next run; the schedule shows the state',
      'D2-7',
      'Until=next stops the scheduled capture for today.',
    ),
    checks: [{ get: `${STOP_CAPTURE}?Until=never`, device: 'west', problem: ['bad-parameter', 'Until'] }],
  },
  row('D2-8', 'capture_status has the legacy members with their types.', {
    get: CAPTURE_STATUS,
    members: {
      Status: BOOLEAN,
      GUIMode: 'full',
      StreamName: STRING,
      CaptureEnable: /^(true|false)$/,
      CaptureTime: NUMBER,
      CaptureByte: INTEGER,
      CapturePacket: INTEGER,
      CaptureBps: NUMBER,
      CapturePps: NUMBER,
      CurrentTime: new RegExp(`^${CTIME}$`),
    },
  }),
  row('D2-9', 'It has further members beside them.', {
    get: CAPTURE_STATUS,
    members: {
      ...all(['CaptureName', 'State', 'ScheduleName', ...TIMES], STRING),
      ...all(['CaptureDrop', 'CaptureFCSError', 'SlotsTotal', 'SlotsUsed'], INTEGER),
      Scheduled: BOOLEAN,
    },
  }),
  row(
    'D2-10',
    'sysmaster/status has its lines in the given order, without a header.',
    {
      act: async (at) => {
        const keys = (await csvOf(at)).map(([key]) => key)
        assert.deepEqual(
          keys.filter((key) => !key.endsWith('_s')),
          CSV_KEYS,
        )
      },
    },
    { get: '/sysmaster/status', head: { 'Content-Type': /^text\/csv/ }, out: NOT_FLEET },
  ),
  row('D2-11', 'Header=1 adds a line with the names of the columns.', {
    act: async (at) => assert.deepEqual((await csvOf(at, '?Header=1'))[0], ['key', 'value']),
  }),
  row('D2-12', 'Links are up or down, their speed is a number, capture_active is true or false.', {
    act: async (at) => {
      const rows = new Map(await csvOf(at))
      assert.match(rows.get('capture0_link') ?? '', /^(up|down)$/)
      assert.match(rows.get('capture0_link_speed') ?? '', /^\d+$/)
      assert.match(rows.get('capture_active') ?? '', /^(true|false)$/)
    },
  }),
  row('D2-13', 'stats_summary is one flat object with counts, ages and errors.', {
    get: '/sysmaster/stats_summary',
    members: {
      uptime: STRING,
      hostname: STRING,
      ...all(
        ['received', 'dropped', 'errors', 'captured'].map((name) => `packets_${name}`),
        INTEGER,
      ),
      ...all(
        ['captured', 'pending', 'disk', 'overflow'].map((name) => `bytes_${name}`),
        INTEGER,
      ),
      ...all(['smart_errors', 'raid_errors', 'stream_errors', 'chunk_errors', 'ecc_errors'], INTEGER),
      packets_oldest: STRING,
      capture_days: NUMBER,
      raid_status: STRING,
    },
    see: (seen) => {
      const nested = Object.entries(seen.json()).filter(([, value]) => typeof value === 'object')
      assert.deepEqual(
        nested.map(([name]) => name),
        ['unavailable'],
      )
    },
  }),
  row('D2-14', 'Its packets_oldest_ts is the retention edge as a string of nanoseconds.', {
    get: '/sysmaster/stats_summary',
    device: 'ring',
    members: { packets_oldest_ts: String(ringNs(27)) },
  }),
  row('D2-15', 'It tells of each disk, link and clock.', {
    get: '/sysmaster/stats_summary',
    members: Object.fromEntries([
      ...DISKS.flatMap((id) => [
        [`disk_${id}_valid`, BOOLEAN],
        [`disk_${id}_serial`, STRING],
        [`disk_${id}_desc`, STRING],
        [`disk_${id}_smart`, INTEGER],
        [`disk_${id}_temp`, NUMBER],
      ]),
      ...PORT_NUMBERS.flatMap((port) => [
        [`cap${port}_link`, BOOLEAN],
        [`cap${port}_link_uptime`, STRING],
        [`cap${port}_speed`, INTEGER],
      ]),
      ...CLOCKS.flatMap((name) => [
        [`clock_${name}_sync`, BOOLEAN],
        [`clock_${name}_offset_mean`, NUMBER],
        [`clock_${name}_offset_stddev`, NUMBER],
        [`clock_${name}_uptime`, NUMBER],
      ]),
    ]),
  }),
  row('D2-16', 'No member comes twice.', {
    get: '/sysmaster/stats_summary',
    out: NOT_FLEET,
    see: (seen) => {
      const names = [...seen.text.matchAll(/"([^"]+)":/g)].map(([, name]) => name)
      assert.deepEqual(names.length, new Set(names).size)
    },
  }),
  row(
    'D2-17',
    'pcap/del answers Status, Str with the time and the name, the name and the bytes as a string.',
    {
      act: async (at) => {
        const { name, answer } = await deleteSmall(at)
        checkMembers(answer.json(), {
          Status: true,
          Str: new RegExp(`^\\[${CTIME}\\] deleted capture \\[${name}\\]$`),
          StreamName: name,
          BytesFreed: /^\d+$/,
        })
      },
    },
  ),
  row('D2-18', 'It needs the full name.', {
    get: '/pcap/del?StreamName=alpha',
    problem: ['unknown-capture'],
  }),
  row('D2-19', 'It is 409 for the capture that runs.', {
    act: (at) =>
      whileCapturing(at, 'kept', async (name) =>
        assert.equal((await at.ask(`/pcap/del?StreamName=${name}`)).json().code, 'capture-active'),
      ),
  }),
  {
    ...heldBy(
      'test/appliance/downloads/download-slots.test.ts',
      'deleting by force cuts a running download inside a record, so that tcpdump sees it',
      'D2-20',
      'It is 409 for a capture that is downloaded; Force=1 overrides.',
    ),
    checks: [
      {
        act: async (at) => {
          await using _held = await holdDownloads(at, 1)
          const refused = await at.ask(`/pcap/del?StreamName=${BIG}&Force=0`)
          assert.equal(refused.json().code, 'capture-in-use')
        },
      },
    ],
  },
]
