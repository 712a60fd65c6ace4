// /v1/queue: what the requests are for, who may know it, and who may cancel them, also at another gateway.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { QUEUE, QUEUE_PLACE } from '../../../../../src/shared/contract/gateway-answers.ts'
import { FakeDevice } from '../../../../support/devices/fake-device.ts'
import { FLEET_BEGIN_NS, FLEET_RANGE, fleetPcap } from '../../../../support/devices/fake-fleet.ts'
import { eventually } from '../../../../support/eventually.ts'
import { httpGet, httpOpen, type OpenAnswer } from '../../../../support/http-get.ts'
import { startTempGateway, type TempGateway } from '../../../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../../../support/processes/temp-redis.ts'

const PACKETS = 300
const BODY = fleetPcap(0, PACKETS)
const SENT_BYTES = 5_000
const TIMERANGE = `/devices/d0/api/v1/pcap/timerange?${FLEET_RANGE}`
const END_NS = FLEET_BEGIN_NS + 3_600_000_000_000n

interface Place {
  readonly id: string
  readonly state: string
  readonly user: string
  readonly capture: string | null
  readonly fromNs: string | null
  readonly toNs: string | null
  readonly bytes: string | null
}

describe('the queue', () => {
  const parts = new AsyncDisposableStack()
  let device: FakeDevice
  /** Both have the same Redis. */
  let gateway: TempGateway
  let other: TempGateway

  before(async () => {
    const redis = parts.use(await TempRedis.create())
    device = parts.use(await FakeDevice.start('d0', BODY))
    const second = parts.use(await FakeDevice.start('d1', fleetPcap(1, PACKETS)))
    const bounded = [
      { name: 'ann', role: 'user' },
      { name: 'far', role: 'admin', devices: 'd1' },
      { name: 'filtered', role: 'admin', filter: 'udp port 53' },
      { name: 'brief', role: 'admin', spanMaxS: 60 },
    ] as const
    const start = () => startTempGateway([device, second], redis.url, {}, bounded)
    gateway = parts.use(await start())
    other = parts.use(await start())
  })
  after(() => parts.disposeAsync())
  beforeEach(() => {
    device.behaviour = {}
  })

  const ask = (user: string, path: string, { method = 'GET', at = gateway } = {}) =>
    httpGet(at.url + path, { method, headers: at.basic(user) })
  const placesOf = async (user: string, at = gateway): Promise<readonly Place[]> => {
    const answer = (await ask(user, '/v1/queue', { at })).json()
    assert.deepEqual(QUEUE.parse(answer), answer, 'as described')
    return (answer as { readonly requests: readonly Place[] }).requests
  }
  const placeOf = async (user: string, id: string, at = gateway) =>
    (await placesOf(user, at)).find((place) => place.id === id)

  /** A download that has sent a part of its body, and sends no more. */
  async function streaming(user: string, path = TIMERANGE): Promise<OpenAnswer & { readonly id: string }> {
    device.behaviour = { hangAfterBytes: SENT_BYTES }
    const answer = await httpOpen(gateway.url + path, { headers: gateway.basic(user) })
    device.behaviour = {}
    assert.equal(answer.response.statusCode, 200)
    return Object.assign(answer, { id: String(answer.response.headers['capfleet-request-id']) })
  }

  /** Four downloads of "full" have all streams, so that a request of `user` waits. */
  async function waiting(user: string) {
    const holders: OpenAnswer[] = []
    while (holders.length < 4) holders.push(await streaming('full'))
    const answer = ask(user, TIMERANGE)
    let place: Place | undefined
    await eventually(
      async () => {
        place = (await placesOf(user)).find(({ state }) => state === 'waiting')
        return place !== undefined && place.fromNs !== null
      },
      { message: 'the request waits, and its range is known' },
    )
    assert.ok(place)
    const leave = () => {
      for (const holder of holders) holder[Symbol.dispose]()
    }
    return { place, answer, leave }
  }

  test('shows the range and the bytes of a download to its user and to administrators, on every gateway', async () => {
    using download = await streaming('ann')
    for (const at of [gateway, other])
      for (const user of ['ann', 'admin'])
        await eventually(
          async () => {
            const place = await placeOf(user, download.id, at)
            return place?.fromNs === String(FLEET_BEGIN_NS) && place.toNs === String(END_NS)
          },
          { message: `${user} sees the range` },
        )
    const shown = (await ask('ann', `/v1/queue/${download.id}`)).json()
    assert.deepEqual(QUEUE_PLACE.parse(shown), shown)
    await eventually(async () => Number((await placeOf('ann', download.id))?.bytes) > 0, {
      message: 'bytes are counted',
    })
    assert.ok(Number((await placeOf('ann', download.id))?.bytes) <= SENT_BYTES)
  })

  test('shows the capture of a download without a range', async () => {
    using download = await streaming('ann', '/devices/d0/api/v1/pcap/single?StreamName=lan_20261102_0900')
    await eventually(async () => (await placeOf('ann', download.id))?.capture === 'lan_20261102_0900', {
      message: 'the capture is shown',
    })
    assert.equal((await placeOf('ann', download.id))?.fromNs, null)
  })

  test('shows other users that someone streams, but not what', async () => {
    using download = await streaming('ann')
    await eventually(async () => (await placeOf('ann', download.id))?.fromNs !== null, {
      message: 'its own user sees it',
    })
    for (const user of ['user', 'viewer', 'filtered', 'brief']) {
      const place = await placeOf(user, download.id)
      assert.equal(place?.user, 'ann', user)
      assert.deepEqual([place.capture, place.fromNs, place.toNs, place.bytes], [null, null, null, null], user)
    }
    assert.equal(await placeOf('far', download.id), undefined)
  })

  test('only its user and administrators cancel a download; for others it does not exist', async () => {
    using download = await streaming('ann')
    for (const user of ['user', 'far', 'filtered', 'brief']) {
      const refused = await ask(user, `/v1/queue/${download.id}`, { method: 'DELETE' })
      assert.deepEqual([refused.status, refused.json().code], [404, 'unknown-request'], user)
    }
    // Who may see others' downloads may not cancel them.
    for (const user of ['viewer', 'full']) {
      const refused = await ask(user, `/v1/queue/${download.id}`, { method: 'DELETE' })
      assert.deepEqual([refused.status, refused.json().code], [403, 'insufficient-scope'], user)
    }
    assert.equal((await placeOf('ann', download.id))?.state, 'streaming')
  })

  test('a token with a filter of its own does not cancel what its user downloads without', async () => {
    using download = await streaming('ann')
    const minted = await ask('ann', '/v1/tokens?Filter=udp&Scopes=capture:download', { method: 'POST' })
    const headers = { authorization: `Bearer ${minted.json().token}` }
    const refused = await httpGet(`${gateway.url}/v1/queue/${download.id}`, { method: 'DELETE', headers })
    assert.deepEqual([refused.status, refused.json().code], [404, 'unknown-request'])
  })

  for (const { by, what } of [
    { by: 'ann', what: 'its user' },
    { by: 'admin', what: 'an administrator' },
  ])
    test(`a request that waits and that ${what} cancels at another gateway gets 409, and leaves the queue`, async () => {
      const { place, answer, leave } = await waiting('ann')
      const cancelled = await ask(by, `/v1/queue/${place.id}`, { method: 'DELETE', at: other })
      assert.deepEqual([cancelled.status, cancelled.json().state], [202, 'waiting'])
      const { status, json } = await answer
      assert.deepEqual([status, json().code], [409, 'download-cancelled'])
      assert.equal(await placeOf('ann', place.id), undefined)
      const receipt = (await ask('ann', `/v1/requests/${place.id}`)).json()
      const detail = `${by} cancelled the request in the queue`
      assert.deepEqual([receipt.status, receipt.error], ['failed', { code: 'download-cancelled', detail }])
      const again = await ask(by, `/v1/queue/${place.id}`, { method: 'DELETE' })
      assert.deepEqual([again.status, again.json().code], [404, 'unknown-request'])
      leave()
    })

  test('a download that streams is cut, never ends as if it were complete, and frees its stream', async () => {
    const download = await streaming('ann')
    const cancelled = await ask('admin', `/v1/queue/${download.id}`, { method: 'DELETE', at: other })
    assert.deepEqual([cancelled.status, cancelled.json().state], [202, 'streaming'])
    await assert.rejects(async () => {
      for await (const _piece of download.response);
    })
    await eventually(async () => (await placeOf('admin', download.id)) === undefined, {
      message: 'its stream is free',
    })
    const receipt = (await ask('ann', `/v1/requests/${download.id}`)).json()
    assert.deepEqual(
      [receipt.status, receipt.error],
      ['failed', { code: 'download-cancelled', detail: 'admin cancelled the request in the queue' }],
    )
    const metrics = (await httpGet(`${gateway.url}/metrics`)).body.toString()
    assert.match(metrics, /^capfleet_leases_cancelled_total\{state="streaming"\} [1-9]/m)
    assert.match(metrics, /^capfleet_leases_cancelled_total\{state="waiting"\} [1-9]/m)
    assert.match(metrics, /^capfleet_downloads_cut_total\{code="download-cancelled"\} [1-9]/m)
  })

  test('a download whose device has not answered yet is cancelled at once, too', async () => {
    device.behaviour = { silent: true }
    const answer = ask('ann', TIMERANGE)
    let id = ''
    await eventually(
      async () => {
        id =
          (await placesOf('ann')).find(({ user, state }) => user === 'ann' && state === 'streaming')?.id ?? ''
        return id !== ''
      },
      { message: 'it has a lease' },
    )
    assert.equal((await ask('ann', `/v1/queue/${id}`, { method: 'DELETE' })).status, 202)
    assert.deepEqual((await answer).json().code, 'download-cancelled')
  })

  test('what was cancelled is continued when its user wants that', async () => {
    const download = await streaming('ann')
    const pieces: Buffer[] = []
    const read = (async () => {
      for await (const piece of download.response) pieces.push(piece as Buffer)
    })()
    await eventually(() => pieces.length > 0, { message: 'a part has arrived' })
    assert.equal((await ask('ann', `/v1/queue/${download.id}`, { method: 'DELETE' })).status, 202)
    await assert.rejects(read)
    const receipt = (await ask('ann', `/v1/requests/${download.id}`)).json()
    // The cut mark is behind the bytes that the receipt counts.
    const kept = Buffer.concat(pieces).subarray(0, Number(receipt.bytes))
    const rest = await ask('ann', `${TIMERANGE}&Resume=${download.id}&Offset=${kept.length}`)
    assert.equal(rest.status, 200, rest.body.toString())
    assert.ok(Buffer.concat([kept, rest.body]).equals(BODY))
  })

  test('unknown ids, HEAD and pages of other sites cancel nothing', async () => {
    const unknown = await ask('admin', '/v1/queue/no-such-id', { method: 'DELETE' })
    assert.deepEqual([unknown.status, unknown.json().code], [404, 'unknown-request'])
    using download = await streaming('ann')
    const headers = { ...gateway.basic('ann'), 'sec-fetch-site': 'cross-site' }
    const path = `${gateway.url}/v1/queue/${download.id}`
    const crossSite = await httpGet(path, { method: 'DELETE', headers })
    assert.deepEqual([crossSite.status, crossSite.json().code], [403, 'cross-site'])
    assert.equal((await ask('ann', `/v1/queue/${download.id}`, { method: 'HEAD' })).status, 200)
    assert.equal((await placeOf('ann', download.id))?.state, 'streaming')
  })

  test('a cancellation is in the audit, with whose request it was', async () => {
    using download = await streaming('ann')
    assert.equal((await ask('admin', `/v1/queue/${download.id}`, { method: 'DELETE' })).status, 202)
    const path = `/v1/queue/${download.id}`
    const { entries } = (await ask('admin', '/v1/audit?Limit=100')).json() as {
      readonly entries: readonly Record<string, unknown>[]
    }
    const [end, begin] = entries.filter((entry) => entry.path === path)
    assert.deepEqual([begin?.event, begin?.user, begin?.method], ['queue.change.begin', 'admin', 'DELETE'])
    assert.deepEqual(
      [end?.event, end?.user, end?.status, end?.owner, end?.devices],
      ['queue.change.end', 'admin', 202, 'ann', ['d0']],
    )
  })
})
