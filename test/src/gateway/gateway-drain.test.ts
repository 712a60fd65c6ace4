// What happens to each kind of client when a gateway shuts down.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { connectTo } from '../../support/clients/raw-client.ts'
import type { FakeDevice } from '../../support/devices/fake-device.ts'
import { FLEET_RANGE, fleetPcap, startFakeFleet } from '../../support/devices/fake-fleet.ts'
import { type HttpAnswer, httpGet, httpOpen } from '../../support/http-get.ts'
import { startSmallFleet } from '../../support/processes/small-fleet.ts'
import { startTempGateway, type TempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'

const PACKETS = 4_000
const PATH = `/devices/d0/api/v1/pcap/timerange?${FLEET_RANGE}`
/** The maximum duration of running downloads; nothing here may take this long. */
const DRAIN_MS = 60_000
/** More than a gateway needs to shut down after its downloads have ended, and far less than downloads may take. */
const PROMPT_MS = 15_000

interface Stand extends AsyncDisposable {
  readonly redis: TempRedis
  readonly d0: FakeDevice
  readonly gateways: readonly TempGateway[]
}

async function setUp(count = 1): Promise<Stand> {
  await using stack = new AsyncDisposableStack()
  const redis = stack.use(await TempRedis.create())
  const fleet = await startFakeFleet(PACKETS, ['d0'])
  for (const device of fleet) stack.use(device)
  const gateways: TempGateway[] = []
  for (let number = 0; number < count; number += 1)
    gateways.push(stack.use(await startTempGateway(fleet, redis.url)))
  const owned = stack.move()
  return { redis, d0: fleet[0] as FakeDevice, gateways, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

function assertDraining({ status, headers, json }: HttpAnswer): void {
  assert.deepEqual([status, json().code], [503, 'draining'])
  assert.equal(headers['retry-after'], '1')
  assert.equal(headers.connection, 'close')
}

const timed = async (work: Promise<unknown>) => {
  const startedMs = performance.now()
  await work
  return performance.now() - startedMs
}

describe('a gateway that ends', () => {
  test('resets a slow client, which loses data in transit: another gateway asks how much arrived, and continues there', async () => {
    await using stand = await setUp(2)
    const [first, second] = stand.gateways as [TempGateway, TempGateway]
    const headers = first.as.user
    // More than fits into the buffers between them and the client.
    const body = fleetPcap(0, 60_000)
    stand.d0.behaviour = { body }
    using answer = await httpOpen(first.url + PATH, { headers })
    await first.close(100)
    const came: Buffer[] = []
    await assert.rejects(async () => {
      for await (const chunk of answer.response) came.push(chunk)
    })
    const have = Buffer.concat(came)
    const id = String(answer.response.headers['capfleet-request-id'])
    const sent = Number((await httpGet(`${second.url}/v1/requests/${id}`, { headers })).json().bytes)
    assert.ok(have.length < sent, `${have.length} of ${sent} bytes came`)
    const alone = await httpGet(`${second.url}${PATH}&Resume=${id}`, { headers })
    assert.deepEqual([alone.status, alone.json().param], [400, 'Resume'])
    const rest = await httpGet(`${second.url}${PATH}&Resume=${id}&Offset=${have.length}`, { headers })
    assert.ok(Buffer.concat([have, rest.body]).equals(body))
  })

  test('rejects waiting requests at once, accepts no long ones, completes running ones, and exits', async () => {
    await using stand = await setUp()
    const { d0, redis } = stand
    const [gateway] = stand.gateways as [TempGateway]
    const headers = gateway.as.user
    const { promise: resumed, resolve: resume } = Promise.withResolvers<void>()
    d0.behaviour = { hangAfterBytes: 10_000, resumed }
    const running = await Promise.all([1, 2, 3, 4].map(() => httpOpen(gateway.url + PATH, { headers })))
    const waiting = httpGet(`${gateway.url}${PATH}&Wait=50`, { headers })
    await redis.until(
      async () => ((await redis.leftovers('capfleet')).join().match(/:q:d0/) ?? []).length > 0,
    )
    // Neither idle connections nor requests that never end delay the shutdown.
    const agent = new Agent({ keepAlive: true })
    const kept = request(`${gateway.url}/v1/devices`, { agent, headers })
    kept.end()
    const [answer] = await once(kept, 'response')
    await buffer(answer)
    const half = await connectTo(gateway.url)
    half.write('GET /v1/devices HTTP/1.1\r\nHost: x\r\n')

    const closed = gateway.close(DRAIN_MS)
    assert.ok((await timed(waiting.then(assertDraining))) < PROMPT_MS)
    const ready = await httpGet(`${gateway.url}/readyz`)
    assert.deepEqual([ready.status, ready.json().draining, ready.headers.connection], [503, true, 'close'])
    assert.equal((await httpGet(`${gateway.url}/livez`)).status, 200)
    assertDraining(await httpGet(gateway.url + PATH, { headers }))
    assertDraining(await httpGet(`${gateway.url}/v1/exports?${FLEET_RANGE}`, { headers, method: 'POST' }))
    const short = await httpGet(`${gateway.url}/v1/devices`, { headers })
    assert.deepEqual([short.status, short.headers.connection], [200, 'close'])
    resume()
    const bodies = await Promise.all(running.map(({ response }) => buffer(response)))
    for (const body of bodies) assert.ok(body.equals(fleetPcap(0, PACKETS)))
    assert.ok((await timed(closed)) < PROMPT_MS)
    agent.destroy()
    half.destroy()
    await redis.until(async () => (await redis.leftovers('capfleet')).length === 0)
  })

  test('cuts what takes longer, and another replica continues it', async () => {
    await using stand = await setUp(2)
    const { d0 } = stand
    const [one, two] = stand.gateways as [TempGateway, TempGateway]
    d0.behaviour = { hangAfterBytes: 100_000 }
    const { response } = await httpOpen(one.url + PATH, { headers: one.as.user })
    const pieces: Buffer[] = []
    const broken = (async () => {
      for await (const piece of response) pieces.push(piece)
    })()
    await Promise.all([assert.rejects(broken), one.close(200)])
    d0.behaviour = {}
    const had = Buffer.concat(pieces)
    const id = response.headers['capfleet-request-id']
    const receipt = (await httpGet(`${two.url}/v1/requests/${id}`, { headers: two.as.user })).json()
    assert.deepEqual([receipt.status, (receipt.error as { code: string }).code], ['failed', 'draining'])
    const rest = await httpGet(`${two.url}${PATH}&Resume=${id}&Offset=${had.length}`, {
      headers: two.as.user,
    })
    assert.equal(rest.status, 200, rest.body.toString())
    assert.ok(Buffer.concat([had, rest.body]).equals(fleetPcap(0, PACKETS)))
  })

  test('ends the events of devices cleanly', async () => {
    await using fleet = await startSmallFleet()
    const { gateway } = fleet
    const headers = gateway.as.user
    const paths = [
      '/devices/east/api/v1/system/events',
      '/devices/west/api/v1/system/telemetry',
      '/api/v1/system/events?Device=east',
    ]
    const open = await Promise.all(paths.map((path) => httpOpen(gateway.url + path, { headers })))
    for (const { response } of open) assert.equal(response.statusCode, 200)
    const ended = open.map(({ response }) => buffer(response))
    const closed = gateway.close(DRAIN_MS)
    assert.ok((await timed(Promise.all(ended))) < PROMPT_MS)
    assert.ok((await timed(closed)) < PROMPT_MS)
  })
})
