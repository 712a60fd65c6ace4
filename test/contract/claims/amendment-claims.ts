/** Section 8 of the decisions: amendments. */
import assert from 'node:assert/strict'
import { httpGet } from '../../support/http-get.ts'
import { startTempGateway } from '../../support/processes/temp-gateway.ts'
import { type Claim, FLEET_ONLY, heldBy, packets, row, THROUGH_GATEWAY } from '../claim.ts'
import { ALPHA, GATEWAY_ZONE } from '../contract-captures.ts'
import {
  CAPTURE_STATUS,
  IN_RANGE,
  LOCAL,
  RANGE,
  RANGE_PATH,
  SECONDS,
  SINGLE,
  START_CAPTURE,
  STOP_CAPTURE,
} from '../contract-queries.ts'
import type { Place } from '../place.ts'
import { holdDownloads } from '../slots.ts'

type Entry = Readonly<Record<string, unknown>>
const PART = packets('alpha', IN_RANGE)
const NOT_BELOW = { fleet: 'at the root the gateway’s own settings count' }
const EMPTY = [
  'Compression',
  'TSMode',
  'Slice',
  'TSMax',
  'FilterBPF',
  'FilterFrame',
  'FilterRE',
  'TSUnit',
  'TSZone',
  'MaxPackets',
  'TSResolution',
  'FilterPort',
  'Wait',
  'Follow',
]
const SYSTEM_READS = ['time_current', 'version', 'port_stats', 'io_stats', 'status'].map(
  (name) => `/api/v1/system/${name}`,
)

/** A device's answer, seen through another route. */
async function asDevice(at: Place, target: string): Promise<void> {
  const direct = await at.appliance.get(target)
  const seen = await at.ask(target)
  assert.deepEqual(
    [seen.status, seen.headers['content-disposition']],
    [direct.status, direct.headers['content-disposition']],
  )
  assert.ok(seen.body.equals(direct.body), target)
}

/** With the setting, a gateway answers the five reads without credentials. */
async function opensSystemReads(at: Place): Promise<void> {
  const { appliances, redis } = at.stand
  const password = appliances.east.credentials('full').split(':')[1] ?? ''
  const devices = [
    {
      password,
      config: {
        name: 'east',
        url: appliances.east.url,
        user: 'full',
        password: { env: 'FAKE_DEVICE_PASSWORD' },
      },
    },
  ]
  await using gateway = await startTempGateway(devices, redis.url, {
    redis: { url: redis.url, keyPrefix: `open-${at.route}` },
    auth: { anonymousSystem: true },
  })
  for (const path of SYSTEM_READS) {
    const target = at.route === 'below' ? `/devices/east${path}` : path
    assert.equal((await httpGet(gateway.url + target)).status, 200, target)
  }
  assert.equal((await httpGet(`${gateway.url}/stream/list`)).status, 401)
}

export const AMENDMENT_CLAIMS: readonly Claim[] = [
  row('D8-1', 'Below /devices/{device} local times mean the zone of the device.', {
    get: `${RANGE_PATH}?${LOCAL.tokyo}`,
    pcap: PART,
    out: NOT_BELOW,
  }),
  row('D8-2', 'There the TSMode aliases are the device’s.', {
    get: `${SINGLE}&TSMode=footer`,
    pcap: packets('alpha', { mode: 'vendorA7130' }),
    out: NOT_BELOW,
  }),
  row(
    'D8-3',
    'There HEAD checks what GET checks, and answers and file names are the device’s.',
    { get: '/api/v1/pcap/single?StreamName=nosuchcapture', method: 'HEAD', status: 404 },
    { get: `${SINGLE}&Slice=0`, method: 'HEAD', status: 400 },
    { get: `${SINGLE}&FilterBPF=tcp+prot`, method: 'HEAD', status: 400 },
    { get: SINGLE, method: 'HEAD', head: { 'Content-Disposition': `attachment; filename="${ALPHA}.pcap"` } },
    {
      act: async (at) => {
        for (const target of [
          SINGLE,
          '/api/v1/pcap/single?StreamName=alpha',
          RANGE,
          `/stream/stime?StreamName=${ALPHA}`,
        ])
          await asDevice(at, target)
      },
      out: { device: 'it is the device', fleet: 'at the root the gateway answers' },
    },
  ),
  row('D8-4', 'At the root local times mean the zone of the gateway, named in Capfleet-Time-Zone.', {
    get: `${RANGE_PATH}?${LOCAL.newYork}`,
    pcap: PART,
    head: { 'Capfleet-Time-Zone': GATEWAY_ZONE },
    out: FLEET_ONLY,
  }),
  row(
    'D8-5',
    'An empty Device is 400.',
    ...[RANGE, CAPTURE_STATUS, STOP_CAPTURE, '/stream/list'].map((path) => ({
      get: `${path}${path.includes('?') ? '&' : '?'}Device=`,
      problem: ['bad-parameter', 'Device'] as const,
      out: FLEET_ONLY,
    })),
  ),
  row(
    'D8-6',
    'A change of the fleet needs Device=, which is * for all.',
    {
      out: FLEET_ONLY,
      act: async (at) => {
        for (const path of [`${START_CAPTURE}?StreamName=x`, STOP_CAPTURE]) {
          const answer = await httpGet(at.base + path, { headers: at.headersOf('full') })
          assert.deepEqual([answer.status, answer.json().param], [400, 'Device'])
        }
      },
    },
    {
      get: `${STOP_CAPTURE}?Device=*&Until=never`,
      problem: ['bad-parameter', 'Until'],
      out: FLEET_ONLY,
    },
  ),
  row(
    'D8-7',
    'On a change a parameter that differs from a known one by its case is 400.',
    {
      get: `${STOP_CAPTURE}?until=next`,
      problem: ['bad-parameter', 'until'],
    },
    { get: `${START_CAPTURE}?streamname=x`, problem: ['bad-parameter', 'streamname'] },
    { get: `/pcap/del?StreamName=${ALPHA}&force=1`, problem: ['bad-parameter', 'force'] },
    {
      out: FLEET_ONLY,
      act: async (at) => {
        const answer = await httpGet(`${at.base}${STOP_CAPTURE}?device=east`, {
          headers: at.headersOf('full'),
        })
        assert.deepEqual([answer.status, answer.json().param], [400, 'device'])
      },
    },
  ),
  row(
    'D8-8',
    'An empty value means the default.',
    ...EMPTY.map((name) => ({ get: `${RANGE}&${name}=`, pcap: PART })),
  ),
  row(
    'D8-9',
    'But not for Device, StreamName and times.',
    { get: '/api/v1/pcap/single?StreamName=', problem: ['bad-parameter', 'StreamName'] },
    { get: `${START_CAPTURE}?StreamName=`, problem: ['bad-parameter', 'StreamName'] },
    { get: `${RANGE_PATH}?TSBegin=&TSEnd=2`, problem: ['bad-parameter', 'TSBegin'] },
    { get: `/api/v1/pcap/splittime?StreamName=${ALPHA}&Start=1&Stop=`, problem: ['bad-parameter', 'Stop'] },
  ),
  row(
    'D8-10',
    'Words of units are taken in any case.',
    ...['SEC', 'Sec'].flatMap((word) => [
      { get: `${RANGE_PATH}?${SECONDS}&TSUnit=${word}`, pcap: PART },
      { get: `/pcap/timerange?${SECONDS}&TSMode=${word}`, pcap: PART },
    ]),
  ),
  row(
    'D8-11',
    'The five system reads are open on the device.',
    ...SYSTEM_READS.map((get) => ({
      get,
      as: 'nobody' as const,
      out: { below: 'D8-12 has it', fleet: 'D8-12 has it' },
    })),
  ),
  row(
    'D8-12',
    'On the gateway they are open by a setting, off by default and named in the 401.',
    ...SYSTEM_READS.map((get) => ({
      get,
      as: 'nobody' as const,
      problem: ['unauthenticated'] as const,
      members: { detail: /anonymousSystem/ },
      out: THROUGH_GATEWAY,
    })),
    { act: opensSystemReads, out: THROUGH_GATEWAY },
  ),
  row('D8-13', 'Command lines, filters and names of others are left out for callers without credentials.', {
    out: { below: 'D8-12 has callers without credentials', fleet: 'D8-12 has callers without credentials' },
    act: async (at) => {
      await using _held = await holdDownloads(at, 1)
      const { cat } = (await at.ask('/api/v1/system/status', { as: 'nobody' })).json() as { cat: Entry }
      assert.equal(cat.cat_EnableCnt, 1)
      for (const suffix of ['CmdLine', 'StreamName', 'FilterBPF'])
        assert.equal(cat[`cat_0_${suffix}`], '', suffix)
    },
  }),
  row(
    'D8-14',
    'Events and telemetry need a user.',
    ...['events', 'telemetry'].map((name) => ({
      get: `/api/v1/system/${name}?Count=1`,
      as: 'nobody' as const,
      problem: ['unauthenticated'] as const,
    })),
  ),
  row(
    'D8-15',
    'Paths of devices that are not listed need the role of a change and pass the check of the site.',
    {
      get: '/nosuch/path',
      as: 'viewer',
      problem: ['insufficient-scope'],
      out: { device: 'it is about the gateway', fleet: 'it is about /devices/{device}' },
    },
    {
      get: '/nosuch/path',
      headers: { 'sec-fetch-site': 'cross-site' },
      problem: ['cross-site'],
      out: { device: 'it is about the gateway', fleet: 'it is about /devices/{device}' },
    },
  ),
  heldBy(
    'test/src/gateway/routes/fleet/device-handlers.test.ts',
    'that the API or the configuration calls readable are for viewers',
    'D8-16',
    'The configuration adds paths that viewers may read.',
  ),
]
