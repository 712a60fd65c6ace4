// Callers whose bounds have a filter never get a packet that does not pass it, whatever they request and by whatever
// path.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import { ROUTES } from '../../../src/gateway/routes/routes.ts'
import { type HttpAnswer, httpGet } from '../../support/http-get.ts'
import { randomMixedPacket } from '../../support/packets/mixed-packets.ts'
import { makePcap } from '../../support/packets/packet-maker.ts'
import { type PcapRecord, readPcap } from '../../support/packets/pcap-records.ts'
import {
  SMALL_FLEET_START_NS,
  type SmallFleet,
  startSmallFleet,
} from '../../support/processes/small-fleet.ts'
import { startTempWorker, type TempWorker } from '../../support/processes/temp-worker.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const QUERIES = Number(process.env.FORCED_QUERIES ?? 80)
/** So large that no time or status in an answer can have the same number by chance. */
const PACKETS = 1_733
const STEP_NS = 1_000_000n
const END_NS = SMALL_FLEET_START_NS + BigInt(PACKETS) * STEP_NS
const RANGE = `TSBegin=${SMALL_FLEET_START_NS}&TSEnd=${END_NS}&TSUnit=nanos`
const FILTER = 'udp port 53'

/** Requests that a caller may try. */
const FILTERS = [
  '',
  'tcp',
  'vlan',
  'not udp',
  'udp port 53',
  'vlan 2 and udp',
  'port 443 or port 80',
  'udp port 4789',
  'host 10.0.0.3',
  'port 80) or (tcp',
  'tcp) or (vlan',
  '(((tcp)))',
  ') or (',
  '1 = 1',
  'vlan or tcp',
  'ether[12:2] = 0x8100 or ip',
] as const

/** Query strings for rows whose path alone is not a valid request. */
const QUESTIONS: Readonly<Record<string, string>> = {
  '/v1/estimate': `?${RANGE}`,
  '/api/v1/pcap/estimate': `?${RANGE}`,
  '/v1/count': `?${RANGE}`,
  '/api/v1/pcap/count': `?${RANGE}`,
  '/v1/seen': `?${RANGE}&Address=10.0.0.0/8&Verify=1`,
  '/api/v1/seen': `?${RANGE}&Address=10.0.0.0/8&Verify=1`,
  '/v1/activity': `?${RANGE}`,
  '/api/v1/activity': `?${RANGE}`,
  '/stream/ssize': '?StreamName=east-first',
  '/stream/stime': '?StreamName=east-first',
  '/pcap/del': '?StreamName=east-first',
  '/sysmaster/capture_start': '?StreamName=x',
}

const random = seededRandom()

describe(`a filter of the bounds (SEED=${random.seed})`, () => {
  let fleet: SmallFleet
  let worker: TempWorker
  before(async () => {
    const captureOf = () =>
      makePcap(
        Array.from({ length: PACKETS }, (_, index) =>
          randomMixedPacket(random, SMALL_FLEET_START_NS + BigInt(index) * STEP_NS),
        ),
      )
    const bounded = [
      { name: 'dns', role: 'user', filter: FILTER },
      { name: 'everything', role: 'admin', filter: FILTER },
    ] as const
    fleet = await startSmallFleet(bounded, captureOf)
    worker = await startTempWorker(fleet.gateway)
  })
  after(async () => {
    await worker?.[Symbol.asyncDispose]()
    await fleet?.[Symbol.asyncDispose]()
  })

  const askAs = (user: string, path: string, method = 'GET'): Promise<HttpAnswer> =>
    httpGet(`${fleet.gateway.url}${path}`, { method, headers: fleet.gateway.basic(user) })
  const ask = (path: string, method = 'GET'): Promise<HttpAnswer> => askAs('dns', path, method)

  test('holds for whatever is asked of downloads', async (t) => {
    const got: PcapRecord[] = []
    const statuses = new Map<number, number>()
    for (let count = 0; count < QUERIES; count += 1) {
      const path = randomDownload()
      const answer = await ask(path)
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      if (answer.status !== 200) assert.ok([400, 403].includes(answer.status), `${answer.status} ${path}`)
      else got.push(...readPcap(answer.body).records)
    }
    t.diagnostic(`${got.length} packets; ${JSON.stringify([...statuses])}`)
    assert.ok(got.length > QUERIES, 'enough of them got packets')
    assert.ok((statuses.get(400) ?? 0) > 0 && (statuses.get(403) ?? 0) > 0)
    assertPass(got)
  })

  test('delivers exactly the packets that pass both it and the filter of the query', async () => {
    const all = await httpGet(`${fleet.gateway.url}/devices/east/api/v1/pcap/timerange?${RANGE}`, {
      headers: fleet.gateway.as.user,
    })
    for (const own of ['host 10.0.0.3', 'vlan or ip', 'udp and greater 150']) {
      const query = `${RANGE}&FilterBPF=${encodeURIComponent(own)}`
      const answer = await ask(`/devices/east/api/v1/pcap/timerange?${query}`)
      assert.deepEqual(answer.body, filtered(all.body, `(${FILTER}) and (${own})`), own)
    }
  })

  test('holds for exports, their files, and what continues a download', async () => {
    for (const device of ['', '&Device=east']) {
      const order = await ask(`/v1/exports?${RANGE}${device}&FilterBPF=udp`, 'POST')
      assert.equal(order.status, 202)
      const { id } = order.json()
      await ask(`/v1/exports/${id}/events`)
      const file = await ask(`/v1/exports/${id}/file`)
      for (const told of [`/v1/exports/${id}`, `/v1/exports/${id}/manifest`])
        assert.deepEqual((await ask(told)).json().forcedFilters, [FILTER], told)
      const { records } = readPcap(file.body)
      assert.ok(records.length > 0)
      assertPass(records)
    }
    const first = await ask(`/api/v1/pcap/timerange?${RANGE}&MaxPackets=10`)
    const resumed = await ask(
      `/api/v1/pcap/timerange?Resume=${first.headers['capfleet-request-id']}&Offset=0`,
    )
    assert.deepEqual(resumed.body, first.body)
    assertPass(readPcap(resumed.body).records)
  })

  test('hides what was made without it', async () => {
    const unbounded = { headers: fleet.gateway.as.full }
    const download = await httpGet(`${fleet.gateway.url}/api/v1/pcap/timerange?${RANGE}`, unbounded)
    const id = String(download.headers['capfleet-request-id'])
    assert.equal((await httpGet(`${fleet.gateway.url}/v1/requests/${id}`, unbounded)).status, 200)
    assert.equal((await ask(`/v1/requests/${id}`)).status, 404)
    assert.equal((await ask(`/api/v1/pcap/timerange?Resume=${id}`)).status, 404)
  })

  test('cannot look into tunnels', async () => {
    const answer = await ask(`/api/v1/pcap/timerange?${RANGE}&FilterBPF=udp&FilterBPFDecap=true`)
    assert.deepEqual([answer.status, answer.json().code], [403, 'out-of-bounds'])
  })

  test('learns that a request is valid, and which devices would answer it, but no count', async () => {
    const answer = await ask(`/v1/estimate?${RANGE}`)
    const { devices, ...sum } = answer.json()
    assert.deepEqual(sum, { kind: 'timerange', packets: null, bytes: null, exact: false, ignored: [] })
    assert.deepEqual(
      (devices as { readonly device: string; readonly packets: null }[]).map(({ device, packets }) => [
        device,
        packets,
      ]),
      [
        ['east', null],
        ['west', null],
      ],
    )
    const wrong = await ask(`/v1/estimate?${RANGE}&FilterBPF=nonsense`)
    assert.deepEqual([wrong.status, wrong.json().code], [400, 'bad-bpf'])
  })

  test('gets lists in pages and by time, with nothing more exact than a minute', async () => {
    const names: string[] = []
    let after = ''
    do {
      const page = (await ask(`/stream/list?Limit=1${after}`)).json()
      const list = page.List as readonly { readonly StreamName: string }[]
      names.push(...list.map(({ StreamName }) => StreamName))
      assert.ok(!String(page.Next).includes(String(SMALL_FLEET_START_NS)))
      after = page.Next === undefined ? '' : `&After=${encodeURIComponent(String(page.Next))}`
    } while (after !== '')
    assert.deepEqual(names.toSorted(), ['east-first', 'east-second', 'west-first', 'west-second'])
    for (const wrong of ['/east/gone', '/north/east-first', `${SMALL_FLEET_START_NS}/east/east-first`])
      assert.equal(
        (await ask(`/stream/list?After=${encodeURIComponent(wrong)}`)).json().code,
        'bad-parameter',
      )
    const lastNs = END_NS - STEP_NS
    for (const fromNs of [lastNs, lastNs + 1n, END_NS]) {
      const { List } = (await ask(`/stream/list?From=${fromNs}`)).json()
      assert.equal((List as readonly unknown[]).length, 4, `From=${fromNs}`)
    }
  })

  for (const { method, path, scope, filtered: view } of ROUTES) {
    // These answer everyone; the metrics do if auth.anonymousMetrics is set.
    if (scope === 'anyone' || scope === 'metrics') continue
    const target = path
      .replace(':device', 'east')
      .replace('{*path}', 'vendor/counters')
      .replace(/:id|:name/, '00000000-0000-4000-8000-000000000000')
    const question = QUESTIONS[path.replace('/devices/:device', '')] ?? ''
    if (view === 'refused')
      test(`${method} ${path} is refused, whatever the role`, async () => {
        const answer = await askAs('everything', target + question, method)
        assert.deepEqual([answer.status, answer.json().code], [403, 'out-of-bounds'])
      })
    // Downloads are compared packet for packet above.
    if (view === 'refused' || method !== 'GET' || path.includes('/pcap/')) continue
    test(`${method} ${path} discloses no packet count`, async () => {
      const { body } = await askAs('everything', target + question)
      assert.deepEqual(await secretsIn(body), [])
    })
  }

  test('negative control: the answers for others contain what must not be disclosed', async () => {
    for (const path of ['/stream/list', '/stream/list?Format=csv', `/v1/estimate?${RANGE}`]) {
      const { body } = await httpGet(fleet.gateway.url + path, { headers: fleet.gateway.as.full })
      assert.ok((await secretsIn(body)).length > 0, path)
    }
  })

  /** All numbers in an answer that are counts of packets, of captures or of the range. */
  async function secretsIn(answer: Buffer): Promise<readonly string[]> {
    const headers = fleet.gateway.as.full
    const list = (await httpGet(`${fleet.gateway.url}/stream/list`, { headers })).json()
    const captures = list.List as readonly Readonly<Record<string, unknown>>[]
    const { packets, bytes } = (
      await httpGet(`${fleet.gateway.url}/v1/estimate?${RANGE}`, { headers })
    ).json()
    // The time of the last packet is a fact too; that of the first packet is in the names of pages and ranges.
    const counts = captures.flatMap(({ PacketCnt, ByteCnt, EndTS }) => [PacketCnt, ByteCnt, EndTS])
    const secrets = new Set([packets, bytes, ...counts].map(String))
    return [...answer.toString('latin1').matchAll(/\d+/g)]
      .map(([text]) => text)
      .filter((text) => secrets.has(text))
  }
})

function randomDownload(): string {
  const [path, range] = random.pick([
    ['/api/v1/pcap/timerange', RANGE],
    ['/devices/east/api/v1/pcap/timerange', RANGE],
    ['/devices/west/api/v1/pcap/single', 'StreamName=west-first'],
    ['/api/v1/pcap/single', 'StreamName=east-second'],
    ['/pcap/single', 'StreamName=west-second'],
    ['/api/v1/pcap/splittime', `StreamName=east-first&Start=${SMALL_FLEET_START_NS}&Stop=${END_NS}`],
    ['/devices/west/api/v1/pcap/timerange', `${RANGE}&Follow=1`],
    ['/devices/west/pcap/timerange', RANGE.replace('TSUnit', 'TSMode').replace('nanos', 'nsec')],
  ] as const)
  const query = [range]
  const filter = random.pick(FILTERS)
  if (filter !== '') query.push(`FilterBPF=${encodeURIComponent(filter)}`)
  if (random.next() < 0.2) query.push('FilterBPFDecap=true')
  if (random.next() < 0.2) query.push(`Slice=${random.integer(64, 200)}`)
  if (random.next() < 0.2) query.push(`MaxPackets=${random.integer(1, 50)}`)
  if (random.next() < 0.1) query.push('TSResolution=usec')
  return `${path}?${query.join('&')}`
}

function assertPass(records: readonly PcapRecord[]): void {
  const outside = readPcap(filtered(makePcap(records), `not (${FILTER})`)).records
  assert.equal(outside.length, 0)
}

/** The count according to tcpdump. */
function filtered(pcap: Buffer, filter: string): Buffer {
  return execFileSync('tcpdump', ['-r', '-', '-w', '-', '--time-stamp-precision=nano', filter], {
    input: pcap,
    maxBuffer: 1_000_000_000,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
}
