// Requests from the client through the gateway to the device: one trace, times in the head, lines in the log.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { FakeDevice } from '../../support/devices/fake-device.ts'
import { eventually } from '../../support/eventually.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { startTempGateway, type TempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'
const RANGE = '/api/v1/pcap/timerange?TSBegin=1&TSEnd=9&Device='

const owned = new AsyncDisposableStack()
const devices: FakeDevice[] = []
let gateway: TempGateway

before(async () => {
  const redis = owned.use(await TempRedis.create())
  for (const name of ['d0', 'd1'])
    devices.push(owned.use(await FakeDevice.start(name, makePcap([makePacket(5n, 'five', 60)]))))
  gateway = owned.use(await startTempGateway(devices, redis.url))
})
after(() => owned.disposeAsync())

async function ask(path: string, headers: Readonly<Record<string, string>> = {}) {
  for (const device of devices) device.requests.length = 0
  const answer = await fetch(gateway.url + path, { headers: { ...gateway.as.full, ...headers } })
  const body = Buffer.from(await answer.arrayBuffer())
  return { status: answer.status, headers: answer.headers, body }
}

/**
 * Excludes connections for event listeners, which the previous test may have left: the gateway opens them itself, and
 * reopens them.
 */
const isFeed = ({ url }: { readonly url?: string | undefined }) => /system\/events/.test(url ?? '')

/** The lines of this event that belong to the request. */
async function linesOf(event: string, requestId: string | null) {
  const found = () =>
    gateway.logged.filter((line) => line.event === event && line.fields.requestId === requestId)
  await eventually(() => found().length > 0, { message: `${event} is logged` })
  return found().map(({ fields }) => fields)
}

describe('the trace of a request', () => {
  test('excludes the events of a device, which end after the request', async () => {
    for (const device of devices) device.requests.length = 0
    const leave = new AbortController()
    const headers = { ...gateway.as.full, traceparent: `00-${TRACE}-${PARENT}-01` }
    const events = await fetch(`${gateway.url}/v1/events`, { headers, signal: leave.signal })
    assert.equal(events.status, 200)
    const feeds = () => devices.flatMap(({ requests }) => requests).filter(isFeed)
    await eventually(() => feeds().length > 0, { message: 'a device is asked for its events' })
    leave.abort()
    for (const { headers: told } of feeds()) assert.doesNotMatch(String(told.traceparent), new RegExp(TRACE))
  })

  for (const [way, path] of [
    ['a download', `${RANGE}d0`],
    ['a merge', `${RANGE}d0,d1`],
    ['a read that is passed on', '/devices/d0/api/v1/system/version'],
    ['a change that is passed on', '/devices/d0/sysmaster/capture_start?StreamName=x'],
  ] as const) {
    test(`goes to the devices of ${way}, and into the log`, async () => {
      const { headers } = await ask(path, {
        traceparent: `00-${TRACE}-${PARENT}-01`,
        tracestate: 'a=1,b=2',
      })
      const asked = devices.flatMap(({ requests }) => requests).filter((request) => !isFeed(request))
      assert.ok(asked.length > 0)
      for (const { headers: told } of asked) {
        assert.match(String(told.traceparent), new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`))
        assert.ok(!String(told.traceparent).includes(PARENT), 'the parent is the gateway')
        assert.equal(told.tracestate, 'a=1,b=2')
      }
      const [line] = await linesOf('http.request', headers.get('capfleet-request-id'))
      assert.equal(line?.traceId, TRACE)
    })
  }

  test('is a new one when the caller has none, or a wrong one', async () => {
    for (const traceparent of [undefined, `00-${TRACE}-${'0'.repeat(16)}-01`]) {
      const sent = traceparent === undefined ? {} : { traceparent, tracestate: 'a=1' }
      const { headers } = await ask(`${RANGE}d0`, sent)
      const request = devices[0]?.requests.find((one) => !isFeed(one))
      const [, traceId] =
        /^00-([0-9a-f]{32})-[0-9a-f]{16}-00$/.exec(String(request?.headers.traceparent)) ?? []
      assert.ok(traceId !== undefined && traceId !== TRACE)
      assert.equal(request?.headers.tracestate, undefined)
      const [line] = await linesOf('http.request', headers.get('capfleet-request-id'))
      assert.equal(line?.traceId, traceId)
    }
  })

  test('is no concern of probes', () => {
    const probes = devices.flatMap((device) => device.probes)
    assert.ok(probes.length > 0)
    assert.ok(probes.every(({ headers }) => headers.traceparent === undefined))
  })
})

describe('Server-Timing', () => {
  test('of a download contains the wait for streams, the start of the devices and the total up to the head', async () => {
    for (const path of [`${RANGE}d0`, `${RANGE}d0,d1`]) {
      const { headers } = await ask(path)
      const timing = headers.get('server-timing') ?? ''
      const [queue, device, total] = [...timing.matchAll(/\w+;dur=([\d.]+)/g)].map(([, ms]) => Number(ms))
      assert.match(timing, /^queue;dur=[\d.]+, devices;dur=[\d.]+, total;dur=[\d.]+$/)
      assert.ok((queue ?? 0) + (device ?? 0) <= (total ?? 0) + 0.2, timing)
    }
  })

  test('of other answers and of errors contains the total', async () => {
    for (const path of ['/v1/devices', `${RANGE}nobody`])
      assert.match((await ask(path)).headers.get('server-timing') ?? '', /^total;dur=[\d.]+$/)
  })
})

describe('the log', () => {
  test('records how a download has ended', async () => {
    const { headers, body } = await ask(`${RANGE}d0,d1`)
    const [line] = await linesOf('download.ended', headers.get('capfleet-request-id'))
    const { durationMs, waitedMs, ...facts } = line ?? {}
    assert.deepEqual(
      { ...facts, requestId: 'x' },
      {
        requestId: 'x',
        user: 'full',
        outcome: 'complete',
        kind: 'merge',
        devices: 2,
        packets: '2',
        bytes: String(body.length),
        code: undefined,
      },
    )
    assert.ok(Number(durationMs) >= 0 && Number(waitedMs) >= 0)
  })

  test('records a refused one, with its error', async () => {
    const [device] = devices
    if (device !== undefined)
      device.behaviour = { problem: { status: 500, body: { code: 'internal-error' } } }
    const { headers } = await ask(`${RANGE}d0`)
    const [line] = await linesOf('download.ended', headers.get('capfleet-request-id'))
    assert.deepEqual([line?.outcome, line?.code], ['refused', 'device-protocol'])
    if (device !== undefined) device.behaviour = {}
  })
})

describe('spans', () => {
  interface SentSpan {
    readonly name: string
    readonly traceId: string
    readonly spanId: string
    readonly parentSpanId?: string
    readonly startTimeUnixNano: string
    readonly endTimeUnixNano: string
    readonly status?: object
  }
  const sent: SentSpan[] = []
  let traced: TempGateway

  before(async () => {
    const collector = createServer(async (req, res) => {
      const { resourceSpans } = (await json(req)) as {
        resourceSpans: { scopeSpans: { spans: SentSpan[] }[] }[]
      }
      sent.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)))
      res.end('{}')
    })
    collector.listen(0, '127.0.0.1')
    await once(collector, 'listening')
    owned.defer(() => void collector.close())
    const { port } = collector.address() as AddressInfo
    const redis = owned.use(await TempRedis.create())
    const tracing = { endpoint: `http://127.0.0.1:${port}/v1/traces`, ratio: 0 }
    traced = owned.use(await startTempGateway(devices, redis.url, { tracing }))
  })

  /** The spans of a trace, once this many have arrived. */
  async function spansOf(traceId: string, count: number): Promise<readonly SentSpan[]> {
    const found = () => sent.filter((span) => span.traceId === traceId)
    await eventually(() => found().length >= count, { message: `${count} spans have come` })
    return found()
  }

  test('of a merge are the request, and in it the wait and the stream of each device', async () => {
    for (const device of devices) device.requests.length = 0
    const traceparent = `00-${TRACE}-${PARENT}-01`
    const answer = await fetch(`${traced.url}${RANGE}d0,d1`, { headers: { ...traced.as.full, traceparent } })
    await answer.arrayBuffer()
    const spans = await spansOf(TRACE, 4)
    const named = (name: string) => spans.filter((span) => span.name === name)
    const [request = assert.fail()] = named('GET /api/v1/pcap/timerange')
    assert.equal(request.parentSpanId, PARENT)
    const streams = named('device stream')
    assert.deepEqual([named('queue wait').length, streams.length], [1, 2])
    for (const span of [...named('queue wait'), ...streams]) {
      assert.equal(span.parentSpanId, request.spanId)
      assert.ok(BigInt(span.startTimeUnixNano) >= BigInt(request.startTimeUnixNano))
      assert.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano))
      assert.equal(span.status, undefined)
    }
    const parents = devices.flatMap(({ requests }) =>
      requests
        .filter(({ url }) => url.includes('/pcap/timerange'))
        .map(({ headers }) => String(headers.traceparent).split('-')[2]),
    )
    assert.deepEqual(
      parents.toSorted(),
      streams.map(({ spanId }) => spanId).toSorted(),
      'devices go on from there',
    )
  })

  test('of an unsampled trace are not sent, nor those of probes', async () => {
    const unrecorded = TRACE.replace('4', '5')
    const recorded = TRACE.replace('4', '6')
    const ask = (path: string, traceId: string, flags: string) =>
      fetch(traced.url + path, {
        headers: { ...traced.as.full, traceparent: `00-${traceId}-${PARENT}-${flags}` },
      })
    await (await ask('/v1/devices', unrecorded, '00')).arrayBuffer()
    await (await ask('/metrics', recorded, '01')).arrayBuffer()
    await (await ask('/v1/devices', recorded, '01')).arrayBuffer()
    const [span, ...more] = await spansOf(recorded, 1)
    assert.deepEqual([span?.name, more.length], ['GET /v1/devices', 0])
    assert.deepEqual(
      sent.filter(({ traceId }) => traceId === unrecorded),
      [],
    )
  })
})
