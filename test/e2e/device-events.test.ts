// Events of a real appliance through a real gateway: they stream, and continue past the gateway's time limit.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { EventStream } from '../support/clients/event-stream.ts'
import { FaultProxy } from '../support/devices/fault-proxy.ts'
import { eventually } from '../support/eventually.ts'
import { httpGet, httpOpen } from '../support/http-get.ts'
import { pause } from '../support/pause.ts'
import { startTempAppliance, type TempAppliance } from '../support/processes/temp-appliance.ts'
import { startTempGateway, type TempGateway } from '../support/processes/temp-gateway.ts'
import { TempRedis } from '../support/processes/temp-redis.ts'

/** Longer than an answer takes on a busy machine. */
const LIMIT_MS = 3_000

describe('events of a device through the gateway', () => {
  let redis: TempRedis
  let appliance: TempAppliance
  let gateway: TempGateway
  let way: FaultProxy

  before(async () => {
    redis = await TempRedis.create()
    appliance = await startTempAppliance()
    const password = appliance.credentials('full').split(':')[1] ?? ''
    // Another URL for the same appliance: two devices cannot share a URL.
    way = await FaultProxy.start({ host: '127.0.0.1', port: Number(new URL(appliance.url).port) })
    const urls = { d0: appliance.url, d1: `http://127.0.0.1:${way.port}` }
    const access = { user: 'full', password: { env: 'FAKE_DEVICE_PASSWORD' } }
    const devices = Object.entries(urls).map(([name, url]) => ({
      password,
      config: { ...access, name, url },
    }))
    gateway = await startTempGateway(devices, redis.url, { control: { timeoutMs: LIMIT_MS } })
  })
  after(async () => {
    await gateway[Symbol.asyncDispose]()
    await way[Symbol.asyncDispose]()
    await appliance[Symbol.asyncDispose]()
    await redis[Symbol.asyncDispose]()
  })

  const open = async (path: string, headers: Readonly<Record<string, string>> = {}) => {
    const answer = await httpOpen(gateway.url + path, { headers: { ...gateway.as.viewer, ...headers } })
    assert.equal(answer.response.statusCode, 200)
    return answer
  }
  const restartRecorder = async (): Promise<void> => {
    await appliance.stopRecorder()
    await appliance.startRecorder()
  }
  const liveClients = async (): Promise<string | undefined> => {
    const { body } = await httpGet(`${appliance.url}/metrics`)
    return /^capfleet_live_clients (\d+)$/m.exec(body.toString())?.[1]
  }

  for (const path of ['/devices/d0/api/v1/system/events', '/api/v1/system/events?Device=d0']) {
    test(`${path}: a silence longer than the gateway's time limit ends nothing`, async () => {
      using stream = new EventStream(await open(path))
      await pause(2 * LIMIT_MS, 'the time limit passes')
      await restartRecorder()
      assert.equal((await stream.next())?.event, 'recorder-started')
    })
  }

  test('Last-Event-ID reaches the device', async () => {
    using all = new EventStream(await open('/devices/d0/api/v1/system/events?LastEventID=0'))
    const [first, second] = await all.take(2)
    const answer = await open('/devices/d0/api/v1/system/events', { 'last-event-id': first?.id ?? '' })
    using resumed = new EventStream(answer)
    assert.deepEqual(await resumed.next(), second)
    assert.equal(answer.response.headers['content-type'], 'text/event-stream')
    assert.equal(answer.response.headers['x-accel-buffering'], 'no')
  })

  test('telemetry lines stream too', async () => {
    const path = '/devices/d0/api/v1/system/telemetry?Count=2&Interval=1'
    const answer = await httpGet(gateway.url + path, { headers: gateway.as.viewer })
    assert.equal(answer.body.toString().trim().split('\n').length, 20)
  })

  test('a client that leaves the gateway leaves the device', async () => {
    const answer = await open('/devices/d0/api/v1/system/events')
    await eventually(async () => (await liveClients()) === '1', { message: 'one follows' })
    answer[Symbol.dispose]()
    await eventually(async () => (await liveClients()) === '0', { message: 'none follows' })
  })

  test('at the root one device must be chosen', async () => {
    for (const path of ['/api/v1/system/events', '/api/v1/system/telemetry?Device=d0,d1']) {
      const answer = await httpGet(gateway.url + path, { headers: gateway.as.viewer })
      assert.deepEqual([answer.status, answer.json().param], [400, 'Device'], path)
      assert.match(
        String(answer.json().detail),
        /one device here; alternatively, use \/devices\/\{device\}\/api/,
      )
    }
  })
})
