// Third-party appliances that lack paths of the API: what they can do works, and errors for the rest name the missing
// path.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { API_BEGIN_NS, API_CAPTURE, API_STEP_NS, ApiDevice } from '../../../support/devices/api-device.ts'
import { httpGet } from '../../../support/http-get.ts'
import { makePcap } from '../../../support/packets/packet-maker.ts'
import { readPcap, recordLines } from '../../../support/packets/pcap-records.ts'
import { startTempGateway, type TempGateway } from '../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'

const PACKETS = 40
const STREAM = `StreamName=${API_CAPTURE}`
const PART = `${STREAM}&Start=${API_BEGIN_NS}&Stop=${API_BEGIN_NS + 5n * API_STEP_NS}`
const RANGE = `TSBegin=${API_BEGIN_NS}&TSEnd=${API_BEGIN_NS + 5n * API_STEP_NS}`

const VERSION = '/api/v1/system/version'
const CLOCK = '/api/v1/system/time_current'

const BEHAVIOURS = {
  /** Only the legacy paths. */
  old: { missing: /^\/api\/v1\// },
  /** One download path is missing. */
  partly: { missing: /^\/api\/v1\/pcap\/splittime$/ },
  /** An HTML page instead of JSON. */
  paged: { pageAt: VERSION },
  /** An HTML page instead of the list. */
  unlisted: { pageAt: '/stream/list' },
  /** Another kind of HTTP server. */
  stranger: { missing: /^\/(api|sysmaster|stream|pcap)\// },
  whole: {},
} as const
type Name = keyof typeof BEHAVIOURS

describe('a third-party device that lacks paths', () => {
  const parts = new AsyncDisposableStack()
  const devices = new Map<Name, ApiDevice>()
  let gateway: TempGateway

  before(async () => {
    const redis = parts.use(await TempRedis.create())
    for (const [name, behaviour] of Object.entries(BEHAVIOURS))
      devices.set(name as Name, parts.use(await ApiDevice.start(name, PACKETS, behaviour)))
    const forced = { name: 'forced', role: 'user', filter: 'odd' } as const
    gateway = parts.use(await startTempGateway([...devices.values()], redis.url, {}, [forced]))
  })
  after(() => parts.disposeAsync())
  beforeEach(() => {
    for (const device of devices.values()) {
      device.asked.length = 0
      device.captures = [API_CAPTURE]
    }
  })

  const get = (path: string, as = 'user') => httpGet(gateway.url + path, { headers: gateway.basic(as) })
  const reportOf = async (name: Name) => {
    const { reachable, kind, version, error, lacks } = (await get(`/v1/devices/${name}`)).json()
    const paths = (lacks as { path: string; detail: string }[]).map(({ path, detail }) => {
      assert.ok(detail.includes(path), detail)
      return path
    })
    return { reachable, kind, version, error, paths: new Set(paths) }
  }
  const device = (name: Name) => {
    const found = devices.get(name)
    assert.ok(found)
    return found
  }
  const first = (name: Name, count: number) => makePcap(device(name).records.slice(0, count))

  test('is shown with what it lacks', async () => {
    const up = { reachable: true, error: null }
    const facts = ['/api/v1/system/status', '/sysmaster/stats_summary']
    assert.deepEqual(await reportOf('whole'), {
      ...up,
      kind: 'api',
      version: '7.1',
      paths: new Set(facts),
    })
    assert.deepEqual(await reportOf('old'), {
      ...up,
      kind: 'legacy',
      version: null,
      paths: new Set([VERSION, CLOCK, ...facts]),
    })
    assert.deepEqual(await reportOf('paged'), {
      ...up,
      kind: 'api',
      version: null,
      paths: new Set([VERSION, ...facts]),
    })
  })

  test('is reported by metrics', async () => {
    const metrics = (await httpGet(`${gateway.url}/metrics`)).body.toString()
    const told = (line: string) => assert.ok(metrics.includes(`\n${line} 1\n`), line)
    told('capfleet_device_kind{device="whole",kind="api"}')
    told('capfleet_device_kind{device="old",kind="legacy"}')
    told(`capfleet_device_lacks{device="old",path="${VERSION}"}`)
    assert.ok(!metrics.includes(`capfleet_device_lacks{device="whole",path="${VERSION}"}`))
    assert.ok(!metrics.includes('capfleet_device_kind{device="stranger"'))
  })

  test('is down when it shows no sign of an appliance, with the reason', async () => {
    const { reachable, kind, error } = await reportOf('stranger')
    assert.deepEqual([reachable, kind], [false, null])
    assert.match(
      String((error as { detail: string }).detail),
      /^device stranger answered \/api\/v1\/system\/version with status 404, and it has neither .* check that its url/,
    )
  })

  test('gives captures, parts and ranges by the paths of old', async () => {
    for (const below of ['', '/devices/old'])
      for (const folder of ['/api/v1/pcap', '/pcap']) {
        const choice = below === '' ? '&Device=old' : ''
        for (const [kind, query, packets] of [
          ['single', STREAM, PACKETS],
          ['splittime', PART, 5],
          ['timerange', RANGE, 5],
        ] as const) {
          const { status, body } = await get(`${below}${folder}/${kind}?${query}${choice}`)
          assert.deepEqual(
            [status, body.equals(first('old', packets))],
            [200, true],
            `${below}${folder}/${kind}`,
          )
        }
      }
    assert.ok(device('old').asked.every((target) => target.startsWith('/pcap/')))
  })

  test('is merged with others, and has done by the gateway what it does not know', async () => {
    const { status, body } = await get(`/api/v1/pcap/timerange?${RANGE}&Device=old,whole`)
    assert.deepEqual([status, readPcap(body).records.length], [200, 10])
    const few = await get(`/api/v1/pcap/timerange?${RANGE}&Device=old&MaxPackets=3`)
    assert.deepEqual(recordLines(readPcap(few.body).records), recordLines(readPcap(first('old', 3)).records))
    const sliced = await get(`/devices/old/api/v1/pcap/timerange?${RANGE}&Slice=7`)
    assert.ok(readPcap(sliced.body).records.every(({ captured }) => captured.length === 7))
    assert.ok(device('old').asked.every((target) => !/MaxPackets|Slice/.test(target)))
  })

  for (const [path, param] of [
    [`timerange?${RANGE}&FilterBPF=odd`, 'FilterBPF'],
    [`timerange?${RANGE}&FilterFrame=capture.port==1`, 'FilterFrame'],
    [`timerange?${RANGE}&TSMode=vendorB3550`, 'TSMode'],
    ['timerange?TSBegin=20261102_090000&TSEnd=20261102_100000', 'TSEnd'],
    [`single?${STREAM}&FilterBPF=ip&FilterBPFDecap=true`, 'FilterBPFDecap'],
    [`splittime?${PART}&TSMode=vendorB3550`, 'TSMode'],
  ] as const)
    test(`is not asked for ${param} by ${path.split('?')[0]}, which the path of old does not know`, async () => {
      const refused = await get(`/devices/old/api/v1/pcap/${path}`)
      const { code, param: told, devices: named } = refused.json()
      assert.deepEqual([refused.status, code, told, named], [400, 'bad-parameter', param, ['old']])
      assert.deepEqual(device('old').asked, [])
    })

  test('filters where the path of old does', async () => {
    const odd = device('old').records.filter((_, index) => index % 2 === 1)
    const { body } = await get(`/devices/old/api/v1/pcap/single?${STREAM}&FilterBPF=odd`)
    assert.ok(body.equals(makePcap(odd)))
  })

  test('gives nothing to a caller with a forced filter', async () => {
    for (const path of [`single?${STREAM}`, `splittime?${PART}`, `timerange?${RANGE}`])
      for (const folder of ['/devices/old/pcap', '/devices/old/api/v1/pcap']) {
        const { status, body } = await get(`${folder}/${path}`, 'forced')
        assert.ok(status >= 400 && !body.includes('old packet'), `${folder}/${path}: ${status}`)
      }
    assert.deepEqual(device('old').asked, [])
  })

  test('is not asked for a range that reaches into more captures than the path of old crosses', async () => {
    device('old').captures = ['a', 'b']
    assert.equal((await get(`/devices/old/pcap/timerange?${RANGE}`)).status, 200)
    device('old').captures = ['a', 'b', 'c']
    device('old').asked.length = 0
    for (const path of ['/devices/old/pcap', '/devices/old/api/v1/pcap']) {
      const { status, json } = await get(`${path}/timerange?${RANGE}`)
      assert.deepEqual([status, json().code, json().param], [400, 'bad-parameter', 'TSEnd'])
      assert.match(
        String(json().detail),
        /more than 2 captures of device old, whose only path, \/pcap\/timerange/,
      )
    }
    assert.deepEqual(device('old').asked, [])
    const later = API_BEGIN_NS + 1_000_000_000_000n
    const after = await get(`/devices/old/pcap/timerange?TSBegin=${later}&TSEnd=${later + 1n}`)
    assert.equal(after.status, 200, 'no capture is there')
  })

  test('is to blame with the path, not the capture', async () => {
    const { status, json } = await get(`/devices/partly/pcap/splittime?${PART}`)
    assert.deepEqual([status, json().code, json().devices], [502, 'device-protocol', ['partly']])
    assert.match(
      String(json().detail),
      /\(status 404\): not found; it lists the capture cap_20261102_0900, .* not have the path \/api\/v1\/pcap\/splittime$/,
    )
    const unknown = await get(`/devices/partly/pcap/splittime?${PART.replace(API_CAPTURE, 'none')}`)
    assert.deepEqual([unknown.status, unknown.json().code], [404, 'unknown-capture'])
    assert.equal((await get(`/devices/partly/pcap/single?${STREAM}`)).status, 200)
  })

  test('that has a page in place of its list is named with the path', async () => {
    const { Unreachable } = (await get('/stream/list?Device=unlisted')).json()
    assert.deepEqual(Unreachable, [
      {
        Device: 'unlisted',
        code: 'device-protocol',
        detail: 'device unlisted sent malformed JSON for /stream/list',
      },
    ])
    assert.equal((await get(`/devices/unlisted/api/v1/pcap/single?${STREAM}`)).status, 200)
  })
})
