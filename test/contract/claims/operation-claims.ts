/** Sections 0 to 2.1, 3, 4 (head), 4.1, 4.2 of the reference: the service as a whole, operation and management. */
import assert from 'node:assert/strict'
import { shellPipeline } from '../../support/processes/shell-pipeline.ts'
import { ABSENT, BOOLEAN, type Claim, LIST, OBJECT, packets, row, STRING } from '../claim.ts'
import { ALPHA, packetsOf } from '../contract-captures.ts'
import {
  CAPTURE_STATUS,
  IN_RANGE,
  RANGE,
  READ_PATHS,
  SINGLE,
  START_CAPTURE,
  STOP_CAPTURE,
} from '../contract-queries.ts'
import type { Place } from '../place.ts'

const CSV = '/sysmaster/status'
const STATS = '/sysmaster/stats_summary'

/** Starts a capture, runs `see`, then stops it; resolves with the capture's full name. */
export async function whileCapturing(
  at: Place,
  name: string,
  see: (fullName: string) => Promise<unknown> = async () => undefined,
): Promise<string> {
  await at.appliance.get(STOP_CAPTURE)
  const started = await at.ask(`${START_CAPTURE}?StreamName=${name}`)
  assert.equal(started.status, 200, started.text)
  try {
    await see(String(started.json().StreamName))
  } finally {
    await at.ask(STOP_CAPTURE)
  }
  return String(started.json().StreamName)
}

let made = 0

/** Imports a capture, deletes it on the route, and resolves with the answer. */
export async function deleteSmall(at: Place) {
  const name = `small${made++}_20260920_1413`
  await at.stand.importSmall(at.device, name)
  return { name, answer: await at.ask(`/pcap/del?StreamName=${name}`) }
}

async function namesOf(at: Place): Promise<unknown[]> {
  const { List } = (await at.ask('/stream/list')).json() as { List: readonly Record<string, unknown>[] }
  return List.map(({ StreamName }) => StreamName)
}

const isRunning = async (at: Place): Promise<unknown> => (await at.ask(CAPTURE_STATUS)).json().CaptureEnable

async function startsAndStops(at: Place): Promise<void> {
  const name = await whileCapturing(at, 'operated', async (fullName) => {
    const status = (await at.ask(CAPTURE_STATUS)).json()
    assert.deepEqual([status.StreamName, status.CaptureEnable], [fullName, 'true'])
  })
  assert.match(name, /^operated_\d{8}_\d{4}/)
  assert.equal(await isRunning(at), 'false')
}

async function deletes(at: Place): Promise<void> {
  const { name, answer } = await deleteSmall(at)
  assert.equal(answer.status, 200, answer.text)
  assert.ok(!(await namesOf(at)).includes(name))
  assert.equal((await at.ask(`/api/v1/pcap/single?StreamName=${name}`)).status, 404)
}

export const OPERATION_CLAIMS: readonly Claim[] = [
  row(
    '0-1',
    'All addresses are relative to a base address, which may have a path.',
    { get: '/api/v1/system/version', members: { version: STRING } },
    { get: '/sysmaster/stats_summary' },
  ),
  row('0-2', 'Every path of the API takes GET.', {
    act: async (at) => {
      for (const path of [...READ_PATHS, START_CAPTURE, STOP_CAPTURE, '/pcap/del']) {
        const { status } = await at.ask(`${path}?Strict=1&StreamName=nosuchcapture&Refused=by+Strict`)
        assert.ok(status !== 405 && status < 500, `${path}: ${status}`)
      }
    },
  }),
  row('0-3', 'Names of fields are taken as they are given, such as a7130 and c3550.', {
    get: `${SINGLE}&FilterFrame=c3550.srcport==1`,
    pcap: packets('alpha', { conditions: [{ field: 'c3550.srcport', op: '==', values: [1] }] }),
  }),

  row('1-1', 'The service is HTTP for scripts: a download goes down a pipe.', {
    act: async (at) => {
      const { stdout, codes } = await shellPipeline(
        'curl -fsS -u "$USER" "$URL" | tcpdump -nr - 2>/dev/null | wc -l',
        {
          USER: at.credentialsOf('user'),
          URL: at.urlOf(SINGLE),
        },
      )
      assert.deepEqual([Number(stdout), codes], [packetsOf('alpha').length, [0, 0, 0]])
    },
  }),
  row('1-2', 'It starts and stops a named capture and tells how it is.', { act: startsAndStops }),
  row('1-3', 'It tells health and statistics of the system.', {
    get: '/api/v1/system/status',
    members: Object.fromEntries(
      ['temperature', 'fan', 'disk', 'link', 'power', 'capture', 'ptp'].map((name) => [name, OBJECT]),
    ),
  }),
  row(
    '1-4',
    'It lists stored captures and deletes them.',
    { get: '/stream/list', members: { List: LIST } },
    { act: deletes },
  ),
  row(
    '1-5',
    'It downloads packets as PCAP by the name of a capture or by time.',
    { get: SINGLE, pcap: packets('alpha') },
    { get: RANGE, pcap: packets('alpha', IN_RANGE) },
  ),
  row(
    '1-6',
    'A download may be filtered, sliced, compressed and stamped from another source.',
    { get: `${SINGLE}&FilterBPF=udp+dst+port+53`, pcap: packets('alpha', { udpPort: 53 }) },
    { get: `${SINGLE}&Slice=64`, pcap: packets('alpha', { sliceBytes: 64 }) },
    { get: `${SINGLE}&Compression=fast`, pcap: packets('alpha'), packed: 'gzip' },
    { get: `${SINGLE}&TSMode=vendorA7130`, pcap: packets('alpha', { mode: 'vendorA7130' }) },
  ),
  row('1-7', 'V1 paths are /api/v1/<operation>/<task>; the others lie below /sysmaster, /pcap and /stream.', {
    act: async (at) => {
      for (const path of [
        '/api/v1/system/version',
        CAPTURE_STATUS,
        '/stream/list',
        `/pcap/single?StreamName=${ALPHA}`,
      ])
        assert.equal((await at.ask(path)).status, 200, path)
    },
  }),

  row(
    '2.1-1',
    'StreamName is what identifies a capture.',
    { get: SINGLE, pcap: packets('alpha') },
    {
      get: '/api/v1/pcap/single?StreamName=nosuchcapture',
      problem: ['unknown-capture', 'StreamName'],
    },
  ),
  row('2.1-2', 'Names of captures are a name, the date and the time.', {
    act: async (at) => assert.match(await whileCapturing(at, 'shape'), /^shape_\d{8}_\d{4}(_\d{2}(_\d+)?)?$/),
  }),

  row('3-1', 'capture_start starts a capture under the given name.', { act: startsAndStops }),
  row('3-2', 'capture_stop stops the capture that runs.', { act: startsAndStops }),
  row('3-3', 'It does not stop a scheduled capture.', {
    get: STOP_CAPTURE,
    device: 'west',
    problem: ['capture-scheduled'],
    see: async (_seen, at) => assert.equal(await isRunning(at), 'true'),
  }),
  row('3-4', 'pcap/del removes the named capture.', { act: deletes }),

  row('4-1', 'Parameters are sent in the query string.', {
    get: SINGLE,
    method: 'GET',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    pcap: packets('alpha'),
  }),
  row('4-2', 'A parameter that must be there and is not is named.', {
    get: '/api/v1/pcap/single',
    problem: ['bad-parameter', 'StreamName'],
  }),
  row('4-3', 'Values with special characters are percent-encoded.', {
    get: `${SINGLE}&FilterBPF=${encodeURIComponent('udp && (dst port 53 || dst port 123) && !(dst port 123)')}`,
    pcap: packets('alpha', { udpPort: 53 }),
  }),

  row('4.1-1', 'capture_start takes StreamName and starts a capture.', { act: startsAndStops }),
  row('4.1-2', 'capture_stop takes nothing and stops the current capture.', { act: startsAndStops }),
  row('4.1-3', 'capture_status tells the status as JSON.', {
    get: CAPTURE_STATUS,
    members: { Status: BOOLEAN, CaptureEnable: STRING, error: ABSENT },
  }),
  row('4.1-4', 'sysmaster/status tells the status of the active capture as CSV.', {
    act: (at) =>
      whileCapturing(at, 'csv', async (fullName) => {
        const { text } = await at.ask(CSV)
        for (const line of text.trimEnd().split('\n')) assert.match(line, /^[a-z_0-9]+, *.*$/)
        assert.match(text, new RegExp(`^capture_name, *${fullName}$`, 'm'))
      }),
  }),

  row('4.2-1', 'stats_summary tells the state of the system as JSON.', {
    get: STATS,
    members: { hostname: STRING },
  }),
  row('4.2-2', 'pcap/del takes the full name and deletes the capture.', { act: deletes }),
]
