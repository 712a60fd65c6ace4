// A real gateway, real appliances, impatient clients. A device answers a fifth download with 503, so its own count of
// such answers proves that none was ever opened.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { impatientDownload } from '../../support/clients/impatient-client.ts'
import { eventually } from '../../support/eventually.ts'
import { httpGet, httpOpen } from '../../support/http-get.ts'
import { readPcap } from '../../support/packets/pcap-records.ts'
import {
  type DemoFacts,
  type DemoProcess,
  startDemo,
  temporaryHome,
} from '../../support/processes/demo-process.ts'
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'

const CLIENTS = 64
const ROUNDS = 6
const RANGE = 'TSBegin=1793610060&TSEnd=1793610080&TSUnit=sec&Wait=55'
const SITES = ['nyc1', 'lon1', 'sgp1'] as const

describe('64 clients against three real devices', () => {
  let home: Awaited<ReturnType<typeof temporaryHome>>
  let demo: DemoProcess

  before(async () => {
    home = await temporaryHome()
    demo = await startDemo(home.path)
  })
  after(async () => {
    await demo[Symbol.asyncDispose]()
    await home[Symbol.asyncDispose]()
  })

  test('no device ever sees a fifth download, nothing is leaked, every clean end is complete', async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    const expected = await packetsByTarget()
    let complete = 0
    let aborted = 0
    const client = async (): Promise<void> => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const target = random.pick(['fleet', ...SITES] as const)
        const body = await download(target, random)
        if (body === undefined) aborted += 1
        else {
          complete += 1
          assert.equal(readPcap(body).records.length, expected.get(target), target)
        }
      }
    }
    await Promise.all(Array.from({ length: CLIENTS }, client))
    t.diagnostic(`${complete} complete, ${aborted} aborted`)
    assert.ok(complete > CLIENTS && aborted > CLIENTS)
    await eventually(async () => (await queue()).length === 0, { message: 'the queue is empty' })
    for (const device of demo.facts.devices) {
      await eventually(async () => (await metric(device, 'capfleet_download_slots_used')) === 0, {
        message: `no slot of ${device.name} is used`,
      })
      assert.equal(
        await metric(device, 'capfleet_http_requests_total{method="GET",status="503"}'),
        0,
        device.name,
      )
      assert.ok((await metric(device, 'capfleet_http_requests_total{method="GET",status="200"}')) > CLIENTS)
    }
  })

  test('the count of refusals would have shown a fifth download', async () => {
    const [device] = demo.facts.devices
    assert.ok(device)
    const headers = { authorization: `Basic ${btoa(`${device.user}:${device.password}`)}` }
    const url = `${device.url}/api/v1/pcap/single?StreamName=demo`
    const open = await Promise.all(Array.from({ length: 5 }, () => httpOpen(url, { headers })))
    const statuses = open.map(({ response }) => response.statusCode)
    for (const answer of open) answer[Symbol.dispose]()
    assert.deepEqual(statuses.toSorted(), [200, 200, 200, 200, 503])
    assert.equal(await metric(device, 'capfleet_http_requests_total{method="GET",status="503"}'), 1)
  })

  function pathOf(target: string): string {
    return `${target === 'fleet' ? '' : `/devices/${target}`}/api/v1/pcap/timerange?${RANGE}`
  }

  async function packetsByTarget(): Promise<Map<string, number>> {
    const entries: [string, number][] = []
    for (const target of ['fleet', ...SITES]) {
      const body = await download(target)
      assert.ok(body)
      entries.push([target, readPcap(body).records.length])
    }
    const [fleet = 0, ...sites] = entries.map(([, packets]) => packets)
    assert.equal(
      fleet,
      sites.reduce((sum, packets) => sum + packets, 0),
    )
    return new Map(entries)
  }

  /** The body, or undefined if this client left, after some bytes or before any. */
  function download(target: string, random?: SeededRandom): Promise<Buffer | undefined> {
    return impatientDownload(demo.facts.gatewayUrl + pathOf(target), {
      headers: { authorization: `Basic ${btoa(`${demo.facts.user}:${demo.facts.password}`)}` },
      leaveAfterBytes: random?.pick([Infinity, Infinity, 0, 50_000, 1_000_000]) ?? Infinity,
      leaveAfterMs: random?.integer(0, 100) ?? 0,
    })
  }

  async function queue(): Promise<unknown[]> {
    const answer = await fetch(`${demo.facts.gatewayUrl}/v1/queue`, {
      headers: { authorization: `Basic ${btoa(`${demo.facts.user}:${demo.facts.password}`)}` },
    })
    return ((await answer.json()) as { requests: unknown[] }).requests
  }
})

/** The value of a metric with its labels, or 0 if it was never counted. */
/** 0 if nothing was counted yet. */
async function metric({ url, user, password }: DemoFacts['devices'][number], name: string): Promise<number> {
  const { status, body } = await httpGet(`${url}/metrics`, { user: `${user}:${password}` })
  assert.equal(status, 200)
  const line = body
    .toString()
    .split('\n')
    .find((candidate) => candidate.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1) ?? 0)
}
