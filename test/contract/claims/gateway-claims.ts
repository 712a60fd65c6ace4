/** Section 6 of the decisions: paths that only the gateway has. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { eventually } from '../../support/eventually.ts'
import { httpGet } from '../../support/http-get.ts'
import { readPcap } from '../../support/packets/pcap-records.ts'
import { type Claim, FLEET_ONLY, heldBy, INTEGER, LIST, OBJECT, packets, row, STRING } from '../claim.ts'
import { BIG, DEVICES, GAMMA, packetsOf, TWIN } from '../contract-captures.ts'
import {
  CAPTURE_STATUS,
  IN_RANGE,
  NANOS,
  RANGE,
  RANGE_PATH,
  SINGLE,
  SPLIT,
  START_CAPTURE,
  STOP_CAPTURE,
} from '../contract-queries.ts'
import type { Place } from '../place.ts'
import { HELD, holdDownloads } from '../slots.ts'

type Entry = Readonly<Record<string, unknown>>
const MERGE = `${RANGE}&Device=*`
const MERGED = packets(['alpha', 'gamma'], IN_RANGE)

const deviceNames = (seen: { json(): Entry }) =>
  (seen.json().Devices as readonly Entry[]).map(({ Device, Status }) => [Device, Status])
const ALL_WELL = DEVICES.map((name) => [name, 200])

async function queueOf(at: Place): Promise<readonly Entry[]> {
  return (await at.ask('/v1/queue')).json().requests as readonly Entry[]
}

export const GATEWAY_CLAIMS: readonly Claim[] = [
  row(
    'D6-1',
    'Below /devices/{device} are the paths of that device; nothing else of a script changes.',
    {
      get: SINGLE,
      pcap: packets('alpha'),
      out: { fleet: 'it is about /devices/{device}' },
    },
    { get: CAPTURE_STATUS, members: { GUIMode: 'full' }, out: { fleet: 'it is about /devices/{device}' } },
  ),
  row(
    'D6-2',
    'At the root the same paths mean the fleet; Device= takes names, globs and labels.',
    ...['east', 'ea*', 'site=us', 'east,west', '*'].map((device) => ({
      get: `${RANGE_PATH}?${NANOS}&Device=${device}`,
      pcap: packets(
        device.startsWith('ea') && !device.includes(',') ? 'alpha' : ['alpha', 'gamma'],
        IN_RANGE,
      ),
      out: FLEET_ONLY,
    })),
  ),
  row(
    'D6-3',
    'The header Capfleet-Device chooses too.',
    {
      get: `${CAPTURE_STATUS}?Device=`,
      problem: ['bad-parameter', 'Device'],
      out: FLEET_ONLY,
    },
    {
      act: async (at) => {
        const answer = await httpGet(`${at.base}${RANGE}`, {
          headers: { ...at.headersOf('user'), 'capfleet-device': 'west' },
        })
        assert.equal(
          readPcap(answer.body).records.length,
          packetsOf('gamma').filter(({ ns }) => ns >= IN_RANGE.beginNs && ns < IN_RANGE.endNs).length,
        )
      },
      out: FLEET_ONLY,
    },
  ),
  row(
    'D6-4',
    'timerange merges the chosen devices, all by default, into one PCAP in order of time.',
    { get: MERGE, pcap: MERGED, out: FLEET_ONLY },
    {
      act: async (at) => {
        const answer = await httpGet(`${at.base}${RANGE}`, { headers: at.headersOf('user') })
        assert.ok(answer.body.equals((await at.ask(MERGE)).body))
      },
      out: FLEET_ONLY,
    },
  ),
  row(
    'D6-5',
    'single and splittime find the one device that holds the capture.',
    { get: SINGLE, pcap: packets('alpha'), out: FLEET_ONLY },
    {
      get: `/api/v1/pcap/single?StreamName=${GAMMA}`,
      pcap: packets('gamma'),
      out: FLEET_ONLY,
    },
    { get: SPLIT, pcap: packets('alpha', IN_RANGE), out: FLEET_ONLY },
    {
      get: `/api/v1/pcap/single?StreamName=${TWIN}`,
      problem: ['ambiguous-capture'],
      out: FLEET_ONLY,
    },
    { get: `/api/v1/pcap/single?StreamName=${TWIN}&Device=west`, out: FLEET_ONLY },
  ),
  row(
    'D6-6',
    'stream/list and the states collect, each entry with its Device.',
    {
      get: '/stream/list?Device=*',
      out: FLEET_ONLY,
      see: (seen) => {
        const found = (seen.json().List as readonly Entry[]).map(({ Device }) => Device)
        assert.deepEqual([...new Set(found)].toSorted(), [...DEVICES].toSorted())
      },
    },
    ...[CAPTURE_STATUS, '/api/v1/system/status', '/sysmaster/status'].map((path) => ({
      get: `${path}?Device=*`,
      out: FLEET_ONLY,
      see: (seen: { json(): Entry }) => assert.deepEqual(deviceNames(seen), ALL_WELL),
    })),
  ),
  row('D6-7', 'capture_start and capture_stop go to all chosen devices, one answer for each.', {
    out: FLEET_ONLY,
    act: async (at) => {
      await at.appliance.get(STOP_CAPTURE)
      const started = await at.ask(`${START_CAPTURE}?StreamName=both&Device=east,ring`)
      assert.deepEqual(deviceNames(started), [
        ['east', 200],
        ['ring', 200],
      ])
      assert.deepEqual(deviceNames(await at.ask(`${STOP_CAPTURE}?Device=east,ring`)), [
        ['east', 200],
        ['ring', 200],
      ])
      const ring = at.stand.appliances.ring
      const { List } = (await ring.get('/stream/list')).json() as { List: readonly Entry[] }
      const made = List.find(({ StreamName }) => String(StreamName).startsWith('both_'))
      if (made !== undefined) await ring.get(`/pcap/del?StreamName=${made.StreamName}`)
    },
  }),
  row('D6-8', '/v1/devices tells health, clock, oldest packet, places and queue of each device.', {
    get: '/v1/devices',
    out: FLEET_ONLY,
    members: {
      'devices.0.name': 'east',
      'devices.0.reachable': true,
      'devices.0.clockOffsetNs': /^-?\d+$/,
      'devices.0.oldestPacketNs': /^\d+$/,
      'devices.0.slotsTotal': 4,
      'devices.0.slotsUsed': INTEGER,
      'devices.0.waiting': INTEGER,
    },
  }),
  row(
    'D6-9',
    '/v1/devices/{device} tells that of one.',
    { get: '/v1/devices/ring', out: FLEET_ONLY, members: { name: 'ring', site: 'eu' } },
    {
      get: '/v1/devices/rimg',
      out: FLEET_ONLY,
      problem: ['unknown-device'],
    },
  ),
  row('D6-10', '/v1/queue tells who streams and who waits, with place and expected wait.', {
    out: FLEET_ONLY,
    act: async (at) => {
      await using _held = await holdDownloads(at, 4)
      // Longer than it takes to be listed.
      const waiting = at.open(`${HELD}&Wait=8`, { as: 'user' })
      const rows = await untilWaiting(at)
      assert.equal(rows.filter(({ grantedAt }) => grantedAt !== null).length, 4)
      const line = rows.find(({ grantedAt }) => grantedAt === null)
      assert.equal(line?.position, 1)
      const own = await at.ask(`/v1/queue/${line?.id}`)
      assert.deepEqual([own.status, own.json().position], [200, 1])
      using refused = await waiting
      assert.equal(refused.response.statusCode, 503)
    },
  }),
  row(
    'D6-11',
    '/v1/requests/{id} is the receipt: status, packets, bytes, first and last time, retries and error by device.',
    {
      get: MERGE,
      out: FLEET_ONLY,
      see: async ({ headers, body }, at) => {
        const receipt = await at.receiptOf(headers)
        const count = readPcap(body).records.length
        assert.deepEqual(
          [receipt.status, receipt.packets, receipt.bytes],
          ['complete', String(count), String(body.length)],
        )
        const devices = receipt.devices as readonly Entry[]
        assert.deepEqual(
          devices.map(({ device }) => device),
          [...DEVICES],
        )
        assert.equal(
          devices.reduce((sum, one) => sum + Number(one.packets), 0),
          count,
        )
        for (const member of ['firstNs', 'lastNs', 'retries', 'error'])
          assert.ok(member in (devices[0] ?? {}), member)
      },
    },
  ),
  row('D6-12', 'With Digest=sha256 it has the hash of the body.', {
    get: `${MERGE}&Digest=sha256`,
    out: FLEET_ONLY,
    see: async ({ headers, body }, at) =>
      assert.equal((await at.receiptOf(headers)).sha256, createHash('sha256').update(body).digest('hex')),
  }),
  row('D6-13', 'The id of a request is in Capfleet-Request-Id.', {
    get: SINGLE,
    head: { 'Capfleet-Request-Id': /^[0-9a-f-]{36}$/ },
  }),
  row(
    'D6-14',
    '/v1/estimate tells bytes and packets by device from the indexes, and takes no stream.',
    {
      get: `/v1/estimate?${NANOS}&Device=east,west`,
      out: FLEET_ONLY,
      members: { packets: STRING, bytes: STRING, devices: LIST, exact: true },
      see: (seen) => {
        const inRange = [...packetsOf('alpha'), ...packetsOf('gamma')].filter(
          ({ ns }) => ns >= IN_RANGE.beginNs && ns < IN_RANGE.endNs,
        )
        assert.equal(seen.json().packets, String(inRange.length))
      },
    },
    {
      out: FLEET_ONLY,
      act: async (at) => {
        await using _held = await holdDownloads(at, 4)
        assert.equal((await at.ask(`/v1/estimate?StreamName=${BIG}`)).json().packets, '65536')
      },
    },
  ),
  row('D6-15', '/v1/exports makes bulk jobs with a file to fetch by ranges.', {
    out: FLEET_ONLY,
    act: async (at) => {
      const query = `${NANOS}&Device=east,west`
      const ordered = await at.ask(`/v1/exports?${query}`, { method: 'POST' })
      assert.equal(ordered.status, 202, ordered.text)
      const export1 = String(ordered.headers.location)
      // The events of an export end with the export.
      await at.ask(`${export1}/events`)
      const direct = await at.ask(`${RANGE_PATH}?${query}`)
      const head = await at.ask(`${export1}/file`, { headers: { range: 'bytes=0-23' } })
      const rest = await at.ask(`${export1}/file`, {
        headers: { range: 'bytes=24-', 'if-range': String(head.headers.etag) },
      })
      assert.deepEqual([head.status, rest.status], [206, 206])
      assert.deepEqual(Buffer.concat([head.body, rest.body]), direct.body)
      assert.equal((await at.ask(export1, { method: 'DELETE' })).status, 200)
      assert.equal((await at.ask(export1)).status, 404)
    },
  }),
  heldBy(
    'test/src/gateway/routes/access/ticket-handlers.test.ts',
    'go with the token by which they were made, and with the user',
    'D6-16',
    '/v1/tokens and /v1/tickets give credentials.',
  ),
  row(
    'D6-17',
    '/metrics, /livez and /readyz are there for operation.',
    { get: '/metrics', out: FLEET_ONLY, text: /^capfleet_/m },
    { get: '/livez', out: FLEET_ONLY },
    { get: '/readyz', out: FLEET_ONLY },
  ),
  row(
    'D6-18',
    '/openapi.json and /openapi describe the API; /docs leads to the documentation.',
    {
      get: '/openapi.json',
      out: FLEET_ONLY,
      head: { 'Content-Type': /^application\/json/ },
      members: { openapi: /^3\./, paths: OBJECT },
    },
    { get: '/openapi', out: FLEET_ONLY, head: { 'Content-Type': /^text\/html/ }, text: /openapi/i },
    { get: '/docs', out: FLEET_ONLY, status: 302, head: { Location: /^docs\/$/ } },
  ),
]

/** Resolves with the queue once a request waits in it. */
async function untilWaiting(at: Place): Promise<readonly Entry[]> {
  let rows: readonly Entry[] = []
  const isWaiting = async (): Promise<boolean> => {
    rows = await queueOf(at)
    return rows.some(({ grantedAt }) => grantedAt === null)
  }
  await eventually(isWaiting, { message: 'a request waits in the queue' })
  return rows
}
