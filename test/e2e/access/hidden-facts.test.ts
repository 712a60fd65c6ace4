// No endpoint reveals users' queries or devices to callers who must not know them: an admin bounded to one of two
// devices, an admin with a filter, and a viewer read every row of the table while another user downloads, exports and
// schedules.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { ROUTES } from '../../../src/gateway/routes/routes.ts'
import { eventually } from '../../support/eventually.ts'
import { httpGet, httpOpen, type OpenAnswer } from '../../support/http-get.ts'
import { writeBigCapture } from '../../support/packets/big-capture.ts'
import {
  SMALL_FLEET_START_NS,
  type SmallFleet,
  startSmallFleet,
} from '../../support/processes/small-fleet.ts'
import { startTempWorker, type TempWorker } from '../../support/processes/temp-worker.ts'

const END_NS = SMALL_FLEET_START_NS + 1_000_000_000n
const RANGE = `TSBegin=${SMALL_FLEET_START_NS}&TSEnd=${END_NS}&TSUnit=nanos`
/** The other user's filter, which all packets pass, as it appears in a query or in text. */
const FILTER = 'FilterBPF=less+64321'
const MARK = /less(\+|%20| )64321/
/** The device that must stay hidden from "near", and every name that contains its name. */
const FAR = /(?<![a-z])east/

/** Query strings for the rows that need one. */
const QUESTIONS: Readonly<Record<string, string>> = {
  '/v1/estimate': RANGE,
  '/api/v1/pcap/estimate': RANGE,
  '/v1/count': RANGE,
  '/api/v1/pcap/count': RANGE,
  '/v1/seen': `${RANGE}&Address=10.0.0.0/8&Verify=1`,
  '/api/v1/seen': `${RANGE}&Address=10.0.0.0/8&Verify=1`,
  '/v1/activity': RANGE,
  '/api/v1/activity': RANGE,
  '/api/v1/pcap/timerange': RANGE,
  '/pcap/timerange': RANGE.replace('TSUnit', 'TSMode').replace('nanos', 'nsec'),
  '/api/v1/pcap/single': 'StreamName=west-first',
  '/pcap/single': 'StreamName=west-first',
  '/api/v1/pcap/splittime': `StreamName=west-first&Start=${SMALL_FLEET_START_NS}&Stop=${END_NS}`,
  '/pcap/splittime': `StreamName=west-first&Start=${SMALL_FLEET_START_NS}&Stop=${END_NS}`,
  '/stream/ssize': 'StreamName=west-first',
  '/stream/stime': 'StreamName=west-first',
  '/api/v1/system/telemetry': 'Count=1',
  '/v1/audit': 'Limit=1000',
  '/api/v1/system/events': 'Telemetry=true&LastEventID=0',
}

/** Streaming answers, and the text after which a test stops reading. */
const LIVE: Readonly<Record<string, RegExp>> = {
  '/api/v1/system/events': /"cat_EnableCnt"/,
  '/v1/events': /event: fleet\ndata: .*\n\n/,
}

interface Asked {
  readonly row: string
  readonly status: number
  readonly text: string
}

describe('what is hidden from a caller', () => {
  const owner = new AsyncDisposableStack()
  let fleet: SmallFleet
  let worker: TempWorker
  /** Ids of everything that the other user created over both devices, by the start of the path that lists it. */
  const ids: Record<string, string> = {}
  const running: OpenAnswer[] = []

  before(async () => {
    const bounded = [
      { name: 'near', role: 'admin', devices: 'west' },
      { name: 'filtered', role: 'admin', filter: 'udp port 53' },
    ] as const
    fleet = owner.use(await startSmallFleet(bounded))
    worker = owner.use(await startTempWorker(fleet.gateway))
    assert.ok(worker)
    for (const [index, name] of ['east', 'west'].entries()) {
      const appliance = fleet.appliances[index]
      assert.ok(appliance)
      const file = join(appliance.folder, 'big.pcap')
      await writeBigCapture(file)
      await appliance.importFiles(`${name}-big`, file)
      const path = `/devices/${name}/api/v1/pcap/single?StreamName=${name}-big&${FILTER}`
      running.push(owner.use(await httpOpen(fleet.gateway.url + path, { headers: fleet.gateway.as.full })))
    }
    const download = await askAs('full', `/api/v1/pcap/timerange?${RANGE}&${FILTER}`)
    ids['/v1/requests'] = String(download.headers['capfleet-request-id'])
    ids['/v1/queue'] = String(running[0]?.response.headers['capfleet-request-id'])
    const order = await askAs('full', `/v1/exports?${RANGE}&${FILTER}`, 'POST')
    ids['/v1/exports'] = String(order.json().id)
    await eventually(
      async () => (await shownAs('full', `/v1/exports/${ids['/v1/exports']}`)).state === 'complete',
      {
        message: 'the export is complete',
      },
    )
    const schedule = await askAs(
      'full',
      `/v1/schedules?Cron=0+3+1+1+*&TSBegin=-1h&TSEnd=now&${FILTER}`,
      'POST',
    )
    assert.equal(schedule.status, 201, schedule.body.toString())
    ids['/v1/schedules'] = String(schedule.json().id)
  })
  after(() => owner.disposeAsync())

  const askAs = (user: string, path: string, method = 'GET') =>
    httpGet(fleet.gateway.url + path, { method, headers: fleet.gateway.basic(user) })
  const shownAs = async (user: string, path: string) => (await askAs(user, path)).json()

  /** The answers of all rows that only read, as this user gets them. */
  async function* answersTo(user: string): AsyncGenerator<Asked> {
    for (const { method, path, scope, changes } of ROUTES) {
      // These answer everyone; the metrics do if auth.anonymousMetrics is set.
      if (method !== 'GET' || changes !== undefined || scope === 'anyone' || scope === 'metrics') continue
      if (path.includes('{*path}') || path.includes(':name')) continue
      for (const device of path.includes(':device') ? ['east', 'west'] : [''])
        yield await answerTo(user, path, device)
    }
  }

  async function answerTo(user: string, path: string, device: string): Promise<Asked> {
    const ofDevice = path.replace('/devices/:device', '')
    const id = Object.entries(ids).find(([start]) => path.startsWith(`${start}/`))?.[1] ?? ''
    const target = path.replace(':device', device).replace(':id', id)
    const url = `${fleet.gateway.url}${target}?${QUESTIONS[ofDevice] ?? ''}`
    using answer = await httpOpen(url, { headers: fleet.gateway.basic(user) })
    const { statusCode: status = 0 } = answer.response
    const enough = LIVE[ofDevice]
    let text = ''
    for await (const piece of answer.response) {
      text += (piece as Buffer).toString('latin1')
      if (status === 200 && enough?.test(text)) break
    }
    return { row: target, status, text }
  }

  for (const { user, isFar } of [
    { user: 'near', isFar: true },
    { user: 'filtered', isFar: false },
    { user: 'viewer', isFar: false },
  ]) {
    test(`${user} learns no query of another user${isFar ? ', nor the other device' : ''}`, async (t) => {
      const statuses = new Map<number, number>()
      for await (const { row, status, text } of answersTo(user)) {
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        assert.ok(!MARK.test(text), `${row}: ${text}`)
        if (!isFar) continue
        if (row.startsWith('/devices/east/') || row.startsWith('/v1/devices/east'))
          assert.equal(status, 404, row)
        else assert.doesNotMatch(text, FAR, row)
      }
      t.diagnostic(JSON.stringify([...statuses]))
      assert.ok((statuses.get(200) ?? 0) >= 20, 'most rows answer')
    })
  }

  test('negative control: these rows reveal it to a user who may know', async () => {
    const [query, far]: [string[], string[]] = [[], []]
    for await (const { row, text } of answersTo('full')) {
      const shown = row.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, 'ID')
      if (MARK.test(text)) query.push(shown)
      if (FAR.test(text)) far.push(shown)
    }
    for (const row of [
      '/api/v1/system/status',
      '/devices/east/api/v1/system/status',
      '/devices/west/api/v1/system/telemetry',
      '/devices/west/api/v1/system/events',
      '/v1/requests/ID',
      '/v1/exports',
      '/v1/exports/ID',
      '/v1/exports/ID/events',
      '/v1/exports/ID/manifest',
      '/v1/schedules',
      '/v1/schedules/ID',
      '/v1/audit',
    ])
      assert.ok(query.includes(row), `${row} is not among ${query.join(' ')}`)
    for (const row of ['/v1/devices', '/stream/list', '/v1/queue', '/v1/estimate', '/v1/activity'])
      assert.ok(far.includes(row), `${row} is not among ${far.join(' ')}`)
  })
})
