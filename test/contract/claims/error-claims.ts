/** Section 1 of the decisions, its table: bodies and codes of errors. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { httpGet } from '../../support/http-get.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'
import {
  type Claim,
  DEVICE_ONLY,
  FLEET_ONLY,
  heldBy,
  INTEGER,
  LIST,
  row,
  STRING,
  THROUGH_GATEWAY,
} from '../claim.ts'
import { ALPHA, BIG, MIXED, MIXED_NS, RING, ringNs, TWIN } from '../contract-captures.ts'
import {
  CAPTURE_STATUS,
  LOCAL,
  RANGE_PATH,
  SINGLE,
  START_CAPTURE,
  STOP_CAPTURE,
} from '../contract-queries.ts'
import type { Place } from '../place.ts'
import { holdDownloads, refusesFifth } from '../slots.ts'
import { whileCapturing } from './operation-claims.ts'

const RANGE = `${RANGE_PATH}?TSBegin=1&TSEnd=2&TSUnit=sec`
const LEGACY_MISTAKES = ['/pcap/single', '/stream/ssize', `/pcap/del?StreamName=nosuchcapture`]

/** A read and a download from a device that fails. */
async function failsWith(at: Place, device: string, code: string, status: number): Promise<void> {
  const { url, as } = at.stand.lame
  for (const path of ['/api/v1/system/version', RANGE]) {
    const separator = path.includes('?') ? '&' : '?'
    const target = at.route === 'below' ? `/devices/${device}${path}` : `${path}${separator}Device=${device}`
    const answer = await httpGet(url + target, { headers: as.full })
    const text = `${target}: ${answer.status} ${answer.body}`
    assert.deepEqual([answer.status, answer.json().code], [status, code], text)
    assert.ok(answer.body.toString().includes(device), `the device is named in ${text}`)
  }
}

export const ERROR_CLAIMS: readonly Claim[] = [
  row(
    'D1-29',
    'Errors are problem+json with type, title, status, detail, code and request id.',
    ...['/api/v1/pcap/single', `${SINGLE}&Slice=0`, '/stream/ssize', '/nosuchpath/x'].map((get) => ({
      get,
      status: get.startsWith('/nosuch') ? 404 : 400,
      head: { 'Content-Type': 'application/problem+json' },
      members: {
        type: STRING,
        title: STRING,
        status: INTEGER,
        detail: STRING,
        code: STRING,
        requestId: STRING,
      },
    })),
  ),
  row(
    'D1-30',
    'They name the parameter, or the position, where it is known.',
    { get: `${SINGLE}&Slice=0`, problem: ['bad-parameter', 'Slice'] },
    {
      get: `${SINGLE}&FilterFrame=capture.port==x`,
      problem: ['bad-frame-filter', 'FilterFrame'],
      members: { position: 14 },
    },
  ),
  row(
    'D1-31',
    'Below /pcap, /stream and /sysmaster the body has Status false and Str too.',
    ...LEGACY_MISTAKES.map((get) => ({
      get,
      status: get.includes('del') ? 404 : 400,
      members: { Status: false, Str: STRING, code: STRING },
    })),
  ),
  row('D1-32', '400 bad-parameter.', {
    get: `${SINGLE}&Slice=x`,
    status: 400,
    problem: ['bad-parameter', 'Slice'],
  }),
  row('D1-33', '400 bad-bpf, with the message of the library.', {
    get: `${SINGLE}&FilterBPF=tcp+prot+80`,
    status: 400,
    problem: ['bad-bpf', 'FilterBPF'],
    members: { detail: /prot|syntax|parse/ },
  }),
  row('D1-34', '400 bad-frame-filter, with the position.', {
    get: `${SINGLE}&FilterFrame=nosuch==1`,
    status: 400,
    problem: ['bad-frame-filter', 'FilterFrame'],
    members: { position: 0 },
  }),
  row('D1-35', '400 bad-regex.', {
    get: `${SINGLE}&FilterRE=(`,
    status: 400,
    problem: ['bad-regex', 'FilterRE'],
  }),
  row('D1-36', '400 bad-timezone.', {
    get: `${RANGE}&TSZone=Nowhere`,
    status: 400,
    problem: ['bad-timezone', 'TSZone'],
  }),
  row('D1-37', '400 ambiguous-timezone, with the candidates.', {
    get: `${RANGE_PATH}?${LOCAL.utc}&TSZone=West`,
    status: 400,
    problem: ['ambiguous-timezone', 'TSZone'],
    members: { candidates: LIST },
  }),
  row('D1-38', '401 unauthenticated, with the challenge of HTTP Basic.', {
    get: '/stream/list',
    as: 'nobody',
    status: 401,
    problem: ['unauthenticated'],
    head: {
      'WWW-Authenticate': /^Basic realm="capfleet", charset="UTF-8"(, Bearer realm="capfleet")?$/,
    },
  }),
  row('D1-39', '403 insufficient-scope.', {
    get: SINGLE,
    as: 'viewer',
    status: 403,
    problem: ['insufficient-scope'],
  }),
  row('D1-40', '404 unknown-capture, with the nearest names.', {
    get: '/api/v1/pcap/single?StreamName=alpha_20260921_1414',
    status: 404,
    problem: ['unknown-capture', 'StreamName'],
    members: { candidates: LIST, detail: new RegExp(ALPHA) },
  }),
  row(
    'D1-41',
    '404 unknown-device.',
    {
      get: `${RANGE}&Device=eest`,
      status: 404,
      problem: ['unknown-device', 'Device'],
      out: FLEET_ONLY,
    },
    { get: '/devices/eest/stream/list', status: 404, problem: ['unknown-device'], out: FLEET_ONLY },
  ),
  row('D1-42', '404 unknown-export.', {
    get: '/v1/exports/00000000-0000-4000-8000-000000000000',
    status: 404,
    problem: ['unknown-export'],
    out: FLEET_ONLY,
  }),
  row('D1-43', '404 unknown-request.', {
    get: '/v1/requests/00000000-0000-4000-8000-000000000000',
    status: 404,
    problem: ['unknown-request'],
    out: FLEET_ONLY,
  }),
  row('D1-44', '409 capture-running.', {
    act: (at) =>
      whileCapturing(at, 'first', async () => {
        const second = await at.ask(`${START_CAPTURE}?StreamName=second`)
        assert.deepEqual([second.status, second.json().code], [409, 'capture-running'])
      }),
  }),
  row('D1-45', '409 capture-not-running.', {
    act: async (at) => {
      await at.appliance.get(STOP_CAPTURE)
      const answer = await at.ask(STOP_CAPTURE)
      assert.deepEqual([answer.status, answer.json().code], [409, 'capture-not-running'])
    },
  }),
  row('D1-46', '409 capture-scheduled.', {
    get: STOP_CAPTURE,
    device: 'west',
    status: 409,
    problem: ['capture-scheduled'],
  }),
  row('D1-47', '409 capture-active for the capture that is being recorded.', {
    act: (at) =>
      whileCapturing(at, 'active', async (fullName) => {
        const answer = await at.ask(`/pcap/del?StreamName=${fullName}`)
        assert.deepEqual([answer.status, answer.json().code], [409, 'capture-active'], answer.text)
      }),
  }),
  row('D1-48', '409 capture-in-use while it is downloaded.', {
    act: async (at) => {
      await using _held = await holdDownloads(at, 1)
      const answer = await at.ask(`/pcap/del?StreamName=${BIG}`)
      assert.deepEqual([answer.status, answer.json().code], [409, 'capture-in-use'], answer.text)
    },
  }),
  row('D1-49', '409 mixed-link-type.', {
    get: `${RANGE_PATH}?TSBegin=${MIXED_NS}&TSEnd=${MIXED_NS + 1n}`,
    status: 409,
    problem: ['mixed-link-type'],
    members: { 'linkTypes.0.linkType': 1, 'linkTypes.1.captures': [MIXED[1][0]] },
  }),
  row('D1-50', '409 ambiguous-capture when several devices hold it.', {
    get: `/api/v1/pcap/single?StreamName=${TWIN}`,
    status: 409,
    problem: ['ambiguous-capture', 'StreamName'],
    members: { candidates: ['east', 'west'] },
    out: FLEET_ONLY,
  }),
  row(
    'D1-51',
    '410 aged-out, with the oldest packet that is held.',
    {
      get: `${RANGE_PATH}?TSBegin=${ringNs(0)}&TSEnd=${ringNs(27)}`,
      device: 'ring',
      status: 410,
      problem: ['aged-out'],
      members: { oldestNs: String(ringNs(27)) },
    },
    {
      get: `/api/v1/pcap/single?StreamName=${RING.gone}`,
      device: 'ring',
      status: 410,
      problem: ['aged-out'],
    },
  ),
  row('D1-52', 'A range that is held in part is 200 with a header.', {
    get: `${RANGE_PATH}?TSBegin=${ringNs(20)}&TSEnd=${ringNs(50)}`,
    device: 'ring',
    head: { 'Capfleet-Aged-Out-Before': String(ringNs(26) + 1n) },
  }),
  heldBy(
    'test/e2e/exports/exports.test.ts',
    'beyond the quota of its user is refused, until one has ended',
    'D1-53',
    '429 user-quota.',
  ),
  row('D1-54', '502 device-unreachable, with the name of the device.', {
    act: (at) => failsWith(at, 'dead', 'device-unreachable', 502),
    out: THROUGH_GATEWAY,
  }),
  row('D1-55', '502 device-protocol, with the name of the device.', {
    act: (at) => failsWith(at, 'odd', 'device-protocol', 502),
    out: THROUGH_GATEWAY,
  }),
  row('D1-56', '504 device-timeout, with the name of the device.', {
    act: (at) => failsWith(at, 'mute', 'device-timeout', 504),
    out: THROUGH_GATEWAY,
  }),
  row('D1-57', '503 download-slots-exhausted, or queue-timeout of the gateway, with Retry-After.', {
    act: refusesFifth,
  }),
  heldBy(
    'test/src/gateway/gateway-load.test.ts',
    'shutdown completes a running download, rejects new ones, and gives everything back',
    'D1-58',
    '503 draining while a program ends.',
  ),
  row('D1-59', '503 store-unavailable, with Retry-After.', {
    device: 'ring',
    act: async (at) => {
      await at.appliance.stopRecorder()
      try {
        const answer = await at.ask(CAPTURE_STATUS)
        assert.deepEqual([answer.status, answer.json().code], [503, 'store-unavailable'], answer.text)
        assert.match(String(answer.headers['retry-after']), /^\d+$/)
      } finally {
        await at.appliance.startRecorder()
      }
    },
  }),
  heldBy(
    'test/appliance/answers/capture-commands.test.ts',
    'a store without room refuses a start, and reports why until a stop',
    'D1-60',
    '507 store-full.',
  ),
  heldBy(
    'test/e2e/exports/export-outages.test.ts',
    'pauses an export, which continues when there is room',
    'D1-61',
    '507 export-store-full.',
  ),
  row('D1-62', 'Documented pipelines use curl -f.', {
    out: DEVICE_ONLY,
    act: async () => {
      const readme = readFileSync(join(REPOSITORY_ROOT, 'README.md'), 'utf8')
      const calls = readme.match(/\bcurl -\S+/g) ?? []
      assert.ok(calls.length > 0)
      assert.deepEqual(
        calls.filter((call) => !call.startsWith('curl -f')),
        [],
      )
    },
  }),
]
