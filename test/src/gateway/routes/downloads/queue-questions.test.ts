// /v1/queue: counts and searches, which have a row for each device; who may cancel them, at one device or at all.
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, before, beforeEach, describe, test } from 'node:test'
import { QUEUE, QUEUE_PLACE } from '../../../../../src/shared/contract/gateway-answers.ts'
import { FakeDevice } from '../../../../support/devices/fake-device.ts'
import { FLEET_BEGIN_NS, FLEET_RANGE, fleetPcap } from '../../../../support/devices/fake-fleet.ts'
import { eventually } from '../../../../support/eventually.ts'
import { httpGet, httpOpen } from '../../../../support/http-get.ts'
import { startTempGateway, type TempGateway } from '../../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../../support/processes/temp-redis.ts'

const COUNT = '/api/v1/pcap/count'
const SEEN = '/api/v1/seen'
const PROGRESS = { packets: '1', bytes: '100', checkedBytes: '1', rangeBytes: '2' }
const END = { end: true, packets: '3', bytes: '300', complete: true }
/** It refuses a filter that no device can compile, as one that compiles filters does. */
const PROVES_FILTERS = { estimateProblem: { status: 400, body: { code: 'bad-bpf' } } }
const CANCELLED = { code: 'download-cancelled', detail: 'ann cancelled the request in the queue' }

interface Place {
  readonly id: string
  readonly request: string
  readonly state: string
  readonly user: string
  readonly devices: readonly string[]
  readonly fromNs: string | null
}
type Line = Readonly<Record<string, unknown>>
type Headers = Readonly<Record<string, string>>

describe('counts and searches in the queue', () => {
  const parts = new AsyncDisposableStack()
  let redis: TempRedis
  let devices: readonly FakeDevice[]
  /** Both have the same Redis. */
  let gateway: TempGateway
  let other: TempGateway
  /** Answers of devices that have begun, in their order. */
  let begun: { readonly device: string; readonly res: ServerResponse }[] = []

  before(async () => {
    redis = parts.use(await TempRedis.create())
    devices = [
      parts.use(await FakeDevice.start('d0', fleetPcap(0, 10))),
      parts.use(await FakeDevice.start('d1', fleetPcap(1, 10))),
    ]
    const bounded = [
      { name: 'ann', role: 'user' },
      { name: 'dns', role: 'user', filter: 'udp port 53' },
      { name: 'brief', role: 'user', spanMaxS: 36_000 },
      { name: 'far', role: 'admin', devices: 'd1' },
    ] as const
    const start = () => startTempGateway(devices, redis.url, {}, bounded)
    gateway = parts.use(await start())
    other = parts.use(await start())
  })
  after(() => parts.disposeAsync())
  beforeEach(() => {
    begun = []
    for (const device of devices) {
      device.behaviour = PROVES_FILTERS
      for (const path of [COUNT, SEEN])
        device.handlers.set(path, (res) => {
          begun.push({ device: device.name, res })
          res.write(`${JSON.stringify(path === COUNT ? PROGRESS : { checkedBytes: '1' })}\n`)
        })
    }
  })

  const ask = (headers: Headers, path: string, { method = 'GET', at = gateway } = {}) =>
    httpGet(at.url + path, { method, headers })
  const cancel = (headers: Headers, id: string, at = other) =>
    ask(headers, `/v1/queue/${id}`, { method: 'DELETE', at })
  const placesOf = async (headers: Headers): Promise<readonly Place[]> => {
    const answer = (await ask(headers, '/v1/queue', { at: other })).json()
    assert.deepEqual(QUEUE.parse(answer), answer, 'as described')
    return (answer as { readonly requests: readonly Place[] }).requests
  }
  const rowsOf = async (headers: Headers, id: string) =>
    (await placesOf(headers)).filter(({ request }) => request === id)

  /** A request whose devices have begun to answer, and its lines as they arrive. */
  async function running(headers: Headers, path: string, count: number) {
    const answer = await httpOpen(gateway.url + path, { headers })
    assert.equal(answer.response.statusCode, 200)
    let text = ''
    const ended = (async () => {
      for await (const piece of answer.response) text += String(piece)
      return text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Line)
    })()
    await eventually(() => begun.length === count, { message: `${count} devices answer` })
    const id = String(answer.response.headers['capfleet-request-id'])
    return { id, ended }
  }
  /** Nothing of it is left: at the devices, in the queue, in Redis. */
  async function isGone(id: string): Promise<void> {
    await eventually(async () => (await rowsOf(gateway.as.admin, id)).length === 0, {
      message: 'it has left the queue',
    })
    for (const { res } of begun)
      await eventually(() => res.destroyed || res.writableEnded, {
        message: 'the device is not read any more',
      })
    await eventually(
      async () =>
        !(await redis.leftovers(gateway.config.redis.keyPrefix)).some((key) => key.includes('question')),
      {
        message: 'nothing is kept of it',
      },
    )
  }

  const FLEET_COUNT = `/v1/count?${FLEET_RANGE}`
  const PATHS = [
    { what: 'a count', path: FLEET_COUNT, rows: 2 },
    { what: 'a count of one device', path: `/devices/d0${COUNT}?${FLEET_RANGE}`, rows: 1 },
    { what: 'a search', path: `/v1/seen?${FLEET_RANGE}&Address=10.0.0.1&Verify=1`, rows: 2 },
    {
      what: 'a search of one device',
      path: `/devices/d0${SEEN}?${FLEET_RANGE}&Address=10.0.0.1&Verify=1`,
      rows: 1,
    },
  ]
  for (const user of ['ann', 'dns', 'brief'])
    for (const { what, path, rows } of PATHS)
      test(`${user} sees the range of ${what}, and cancels it as a whole at another gateway`, async () => {
        const headers = gateway.basic(user)
        const { id, ended } = await running(headers, path, rows)
        const shown = await rowsOf(headers, id)
        assert.deepEqual(
          shown.map((row) => row.fromNs),
          shown.map(() => String(FLEET_BEGIN_NS)),
        )
        assert.equal(shown.length, rows)
        const place = (await ask(headers, `/v1/queue/${id}`)).json()
        assert.deepEqual(QUEUE_PLACE.parse(place), place)
        const names = ['d0', 'd1'].slice(0, rows)
        assert.deepEqual([place.id, place.request, place.state, place.devices], [id, id, 'streaming', names])
        const cancelled = await cancel(headers, id)
        assert.deepEqual([cancelled.status, cancelled.json().devices], [202, names])
        const lines = await ended
        const detail = `${user} cancelled the request in the queue`
        assert.deepEqual(lines.at(-1), { error: { code: 'download-cancelled', detail } })
        assert.ok(!lines.some((line) => 'end' in line), 'it does not look whole')
        await isGone(id)
        assert.deepEqual((await cancel(headers, id)).json().code, 'unknown-request')
      })

  test('the id of a row cancels one device, and the others are counted to their ends', async () => {
    const ann = gateway.basic('ann')
    const { id, ended } = await running(ann, FLEET_COUNT, 2)
    const row = (await rowsOf(ann, id)).find(({ devices: [name] }) => name === 'd1')
    const cancelled = await cancel(ann, row?.id ?? '')
    assert.deepEqual([cancelled.status, cancelled.json().devices], [202, ['d1']])
    await eventually(async () => (await rowsOf(ann, id)).length === 1, {
      message: 'the row has left the queue',
    })
    begun.find(({ device }) => device === 'd0')?.res.end(`${JSON.stringify(END)}\n`)
    const lines = await ended
    assert.deepEqual(
      lines.find((line) => line.device === 'd1' && 'error' in line),
      { device: 'd1', error: CANCELLED },
    )
    const end = lines.at(-1)
    assert.deepEqual([end?.end, end?.packets, end?.unanswered], [true, '3', ['d1']])
    await isGone(id)
  })

  test('devices that are still waited for are cancelled with the others', async () => {
    const ann = gateway.basic('ann')
    const [d0] = devices
    assert.ok(d0)
    d0.behaviour = { hangAfterBytes: 24 }
    await using holders = new AsyncDisposableStack()
    for (let count = 0; count < 4; count += 1)
      holders.use(
        await httpOpen(`${gateway.url}/devices/d0/api/v1/pcap/timerange?${FLEET_RANGE}`, {
          headers: gateway.as.full,
        }),
      )
    const { id, ended } = await running(ann, FLEET_COUNT, 1)
    await eventually(async () => (await rowsOf(ann, id)).some(({ state }) => state === 'waiting'), {
      message: 'one device is waited for',
    })
    const cancelled = await cancel(ann, id)
    assert.deepEqual([cancelled.status, cancelled.json().state], [202, 'streaming'])
    assert.deepEqual((await ended).at(-1), { error: CANCELLED })
    await isGone(id)
  })

  test('a request that only waits, for one device, gets 409', async () => {
    const ann = gateway.basic('ann')
    const [d0] = devices
    assert.ok(d0)
    d0.behaviour = { hangAfterBytes: 24 }
    await using holders = new AsyncDisposableStack()
    for (let count = 0; count < 4; count += 1)
      holders.use(
        await httpOpen(`${gateway.url}/devices/d0/api/v1/pcap/timerange?${FLEET_RANGE}`, {
          headers: gateway.as.full,
        }),
      )
    const answer = ask(ann, `/devices/d0${COUNT}?${FLEET_RANGE}`)
    let id = ''
    await eventually(
      async () => {
        id = (await placesOf(ann)).find(({ state }) => state === 'waiting')?.id ?? ''
        return id !== ''
      },
      { message: 'it waits' },
    )
    assert.equal((await cancel(ann, id)).json().state, 'waiting')
    const { status, json } = await answer
    assert.deepEqual([status, json().code], [409, 'download-cancelled'])
    await isGone(id)
  })

  test('a token with a filter cancels its own count, and none that its user makes without the filter', async () => {
    for (const device of devices) device.behaviour = {}
    const minted = await ask(gateway.basic('ann'), '/v1/tokens?Filter=udp&Scopes=capture:download', {
      method: 'POST',
    })
    assert.equal(minted.status, 201, minted.body.toString())
    const token = { authorization: `Bearer ${minted.json().token}` }
    for (const device of devices) device.behaviour = PROVES_FILTERS
    const own = await running(token, FLEET_COUNT, 2)
    const whole = await running(gateway.basic('ann'), FLEET_COUNT, 4)
    for (const id of [whole.id, `${whole.id}.0`])
      assert.deepEqual((await cancel(token, id, gateway)).json().code, 'unknown-request')
    assert.equal((await cancel(token, own.id, gateway)).status, 202)
    assert.deepEqual((await own.ended).at(-1), { error: CANCELLED })
    assert.equal((await rowsOf(gateway.basic('ann'), whole.id)).length, 2)
    assert.equal((await cancel(gateway.as.admin, whole.id)).status, 202)
    await whole.ended
    await isGone(whole.id)
  })

  test('other users, and administrators who may not see all of its devices, cancel nothing', async () => {
    const { id, ended } = await running(gateway.basic('ann'), FLEET_COUNT, 2)
    for (const user of ['user', 'dns', 'far']) {
      const refused = await cancel(gateway.basic(user), id)
      assert.deepEqual([refused.status, refused.json().code], [404, 'unknown-request'], user)
    }
    const refused = await cancel(gateway.as.full, id)
    assert.deepEqual([refused.status, refused.json().code], [403, 'insufficient-scope'])
    assert.equal((await rowsOf(gateway.as.admin, id)).length, 2)
    assert.equal((await cancel(gateway.basic('ann'), id)).status, 202)
    await ended
  })
})
