// What a client sees while its download waits for a stream: its place, and /v1/queue.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { QUEUE, QUEUE_PLACE } from '../../../../src/shared/contract/gateway-answers.ts'
import type { FakeDevice } from '../../../support/devices/fake-device.ts'
import { FLEET_RANGE, fleetPcap } from '../../../support/devices/fake-fleet.ts'
import { eventually } from '../../../support/eventually.ts'
import { httpGet, httpOpen, type OpenAnswer } from '../../../support/http-get.ts'
import { gatewayWorld } from '../../../support/processes/gateway-world.ts'

const PACKETS = 300
const TIMERANGE = `/api/v1/pcap/timerange?${FLEET_RANGE}`
const ONE = `/devices/d0${TIMERANGE}`

describe('a download that waits', () => {
  const world = gatewayWorld(PACKETS)
  const { fleet } = world

  const get = (path: string, headers = {}) =>
    httpGet(world.gateway.url + path, { headers: { ...world.gateway.as.user, ...headers } })
  const first = (): FakeDevice => fleet[0] as FakeDevice

  /** Takes all streams of d0 until disposed; later requests are served at once. */
  async function fillDevice(): Promise<Disposable> {
    const before = first().behaviour
    first().behaviour = { hangAfterBytes: 1_000 }
    const holders: OpenAnswer[] = []
    for (let stream = 0; stream < 4; stream += 1) {
      holders.push(await httpOpen(world.gateway.url + ONE, { headers: world.gateway.as.user }))
    }
    first().behaviour = before
    return {
      [Symbol.dispose]: () => {
        for (const holder of holders) holder[Symbol.dispose]()
      },
    }
  }

  async function waitingRow(): Promise<Record<string, unknown>> {
    let found: Record<string, unknown> | undefined
    await eventually(
      async () => {
        const { requests } = (await get('/v1/queue')).json() as { requests: Record<string, unknown>[] }
        found = requests.find((row) => row.state === 'waiting')
        return found !== undefined
      },
      { message: 'the download waits' },
    )
    return found ?? {}
  }

  test('is shown with its place, class and user; its id is that of the answer and the receipt', async () => {
    const holders = await fillDevice()
    const answer = get(ONE)
    const row = await waitingRow()
    assert.deepEqual([row.class, row.user, row.position, row.devices], ['interactive', 'user', 1, ['d0']])
    assert.ok('etaMs' in row)
    const place = (await get(`/v1/queue/${row.id}`)).json()
    const queue = (await get('/v1/queue')).json()
    assert.deepEqual([QUEUE_PLACE.parse(place), QUEUE.parse(queue)], [place, queue], 'as described')
    const { enqueuedAt, ...shown } = place
    assert.deepEqual([shown.id, shown.state, shown.position], [row.id, 'waiting', 1])
    assert.ok(Date.parse(String(enqueuedAt)) > 0)
    holders[Symbol.dispose]()
    const { headers, body } = await answer
    assert.equal(headers['capfleet-request-id'], row.id)
    assert.equal(headers['capfleet-queue-position'], '1', 'a download that waited says where it began')
    assert.ok(body.equals(fleetPcap(0, PACKETS)))
    const receipt = (await get(`/v1/requests/${row.id}`)).json()
    assert.ok(Number(receipt.waitedMs) > 0)
    const gone = await get(`/v1/queue/${row.id}`)
    assert.deepEqual([gone.status, gone.json().code], [404, 'unknown-request'])
  })

  test('that did not wait has no place', async () => {
    assert.equal((await get(ONE)).headers['capfleet-queue-position'], undefined)
  })

  test('is answered 503 with its place and when to retry', async () => {
    using _holders = await fillDevice()
    const answer = await get(`${ONE}&Wait=0`)
    assert.deepEqual([answer.status, answer.json().code], [503, 'queue-timeout'])
    assert.equal(answer.headers['capfleet-queue-position'], '1')
    assert.ok(Number(answer.headers['retry-after']) > 0)
    assert.match(String(answer.json().detail), /^no download slot is free on d0; /)
    const late = await get(`${ONE}&Wait=1`)
    assert.match(String(late.json().detail), /^no download slot became free on d0 within 1 s; /)
    const receipt = (await get(`/v1/requests/${answer.headers['capfleet-request-id']}`)).json()
    assert.deepEqual(
      [receipt.status, receipt.error],
      ['failed', { code: 'queue-timeout', detail: answer.json().detail }],
    )
  })

  test('queued after downloads that follow gets no estimate of its turn, and no immediate Retry-After', async () => {
    first().behaviour = { hangAfterBytes: 1_000 }
    const opened = ['&Follow=1', '&Follow=1', '&Follow=1', ''].map((more) =>
      httpOpen(world.gateway.url + ONE + more, { headers: world.gateway.as.user }),
    )
    const holders = await Promise.all(opened)
    // Longer than it takes to be listed.
    const waiting = get(`${ONE}&Follow=1&Wait=8`)
    const row = await waitingRow()
    assert.deepEqual([row.class, row.etaMs], ['bulk', null])
    const answer = await waiting
    assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '5'])
    for (const holder of holders) holder[Symbol.dispose]()
  })

  test('with Early=1, which is no parameter any more, says that it was ignored', async () => {
    const early = await get(`${ONE}&Early=1`)
    assert.deepEqual([early.status, early.headers['capfleet-ignored']], [200, 'Early'])
    const strict = await get(`${ONE}&Early=1&Strict=1`)
    assert.deepEqual([strict.status, strict.json().code], [400, 'bad-parameter'])
  })

  test('HEAD checks parameters and filters, and takes no stream', async () => {
    const head = (query: string) =>
      httpGet(`${world.gateway.url}${TIMERANGE}${query}`, { method: 'HEAD', headers: world.gateway.as.user })
    assert.equal((await head('&FilterBPF=tcp')).status, 200)
    assert.equal((await head('&Slice=0')).status, 400)
    assert.ok(first().requests.some(({ url }) => url.startsWith('/api/v1/pcap/estimate')))
    const asked = fleet.flatMap((device) => device.requests).filter(({ url }) => url.includes('/timerange'))
    assert.ok(asked.length > 0 && asked.every(({ method }) => method === 'HEAD'))
  })
})
