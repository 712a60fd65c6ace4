import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import type { EndedSpan } from '../../../../src/shared/base/ended-span.ts'
import type { Log } from '../../../../src/shared/base/log.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { Secret } from '../../../../src/shared/base/secret.ts'
import { SpanExporter } from '../../../../src/shared/base/span-exporter.ts'
import { eventually } from '../../../support/eventually.ts'
import { ownProcessorMs } from '../../../support/processes/processor-time.ts'

/** The time that a collector may take if that is not the test's subject. */
const PATIENT_MS = 60_000

interface Sent {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly Readonly<Record<string, unknown>>[] }[]
  }[]
}

async function collector(t: TestContext, answer: (req: IncomingMessage, res: ServerResponse) => void) {
  const server = createServer(answer)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`
}

function exporterTo(endpoint: string, timeoutMs = PATIENT_MS) {
  const logged: string[] = []
  const note = (event: string) => void logged.push(event)
  const log: Log = { debug: note, info: note, warn: note, error: note }
  const metrics = new Metrics()
  const token = new Secret('s3cret')
  const exporter = new SpanExporter({
    endpoint,
    token,
    ratio: 1,
    version: '1.2.3',
    log,
    metrics,
    timings: { everyMs: 20, timeoutMs },
  })
  const counted = async (outcome: string) => {
    const text = await metrics.text()
    return Number(
      new RegExp(`^capfleet_tracing_spans_total{outcome="${outcome}"} (\\d+)$`, 'm').exec(text)?.[1],
    )
  }
  return { exporter, logged, counted }
}

const SPAN: EndedSpan = {
  name: 'GET /devices',
  kind: 'server',
  trace: {
    traceId: '1'.repeat(32),
    spanId: '2'.repeat(16),
    parentId: '3'.repeat(16),
    isSampled: true,
    state: 'a=1',
  },
  startMs: 1_790_000_000_000.5,
  endMs: 1_790_000_000_001.25,
  attributes: { 'url.path': '/devices', 'http.response.status_code': 200 },
  error: 'status 500',
}

test('spans go to the collector as the protocol has them', async (t) => {
  const seen: { headers: IncomingMessage['headers']; body: Sent }[] = []
  const endpoint = await collector(t, async (req, res) => {
    seen.push({ headers: req.headers, body: (await json(req)) as Sent })
    res.end('{}')
  })
  const { exporter, counted } = exporterTo(endpoint)
  exporter.add(SPAN)
  await eventually(async () => (await counted('sent')) === 1, { message: 'it is sent' })
  await exporter[Symbol.asyncDispose]()
  const [{ headers, body } = assert.fail()] = seen
  assert.deepEqual(
    [headers['content-type'], headers.authorization, headers.traceparent],
    ['application/json', 'Bearer s3cret', undefined],
  )
  assert.deepEqual(body.resourceSpans[0]?.scopeSpans[0]?.spans, [
    {
      traceId: '1'.repeat(32),
      spanId: '2'.repeat(16),
      parentSpanId: '3'.repeat(16),
      traceState: 'a=1',
      name: 'GET /devices',
      kind: 2,
      startTimeUnixNano: '1790000000000500000',
      endTimeUnixNano: '1790000000001250000',
      attributes: [
        { key: 'url.path', value: { stringValue: '/devices' } },
        { key: 'http.response.status_code', value: { intValue: '200' } },
      ],
      status: { code: 2, message: 'status 500' },
    },
  ])
  assert.deepEqual([await counted('sent'), await counted('dropped')], [1, 0])
})

test('for a collector that never answers a bounded number of spans is kept, and it is logged once', async (t) => {
  const endpoint = await collector(t, () => undefined)
  const { exporter, logged, counted } = exporterTo(endpoint, 200)
  const before = ownProcessorMs()
  for (let at = 0; at < 100_000; at++) exporter.add(SPAN)
  const addedMs = ownProcessorMs() - before
  assert.ok(addedMs < 2_000, `${addedMs} ms for 100,000 spans`)
  assert.ok((await counted('dropped')) >= 100_000 - 2_048 - 512)
  await eventually(() => logged.length > 0, { message: 'the collector is missed' })
  await exporter[Symbol.asyncDispose]()
  assert.deepEqual(logged, ['tracing.not-sent'])
  assert.equal(await counted('sent'), 0)
})

test('a collector that is back gets what it could not take before', async (t) => {
  let status = 503
  const endpoint = await collector(t, (req, res) => {
    req.resume()
    res.writeHead(status).end()
  })
  const { exporter, logged, counted } = exporterTo(endpoint)
  exporter.add(SPAN)
  await eventually(() => logged.length > 0, { message: 'the collector is missed' })
  status = 200
  exporter.add(SPAN)
  await eventually(() => logged.length > 1, { message: 'the collector is back' })
  assert.deepEqual(logged, ['tracing.not-sent', 'tracing.sent-again'])
  // The second span may have come while the first one was being sent.
  await eventually(async () => (await counted('sent')) === 2, { message: 'both are sent' })
  assert.equal(await counted('dropped'), 0)
  await exporter[Symbol.asyncDispose]()
})

test('what a collector refuses for good is dropped', async (t) => {
  const endpoint = await collector(t, (req, res) => {
    req.resume()
    res.writeHead(400).end()
  })
  const { exporter, logged, counted } = exporterTo(endpoint)
  exporter.add(SPAN)
  await eventually(() => logged.length > 0, { message: 'the refusal is told' })
  assert.deepEqual([await counted('sent'), await counted('dropped')], [0, 1])
  await exporter[Symbol.asyncDispose]()
})
