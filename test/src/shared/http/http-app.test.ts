import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { createLog } from '../../../../src/shared/base/log.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { createHttpApp, type HttpAppOptions } from '../../../../src/shared/http/http-app.ts'
import { listen } from '../../../../src/shared/http/http-server.ts'
import { createTempCertificate, type TempCertificate } from '../../../support/access/temp-certificate.ts'
import { httpGet } from '../../../support/http-get.ts'

async function serve(t: TestContext, thrown?: unknown): Promise<string> {
  const app = createHttpApp({ log: createLog('test', 'silent'), metrics: new Metrics() })
  app.use(() => {
    if (thrown !== undefined) throw thrown
  })
  const server = await listen(app.callback(), { host: '127.0.0.1', port: 0 }, new Metrics())
  t.after(() => server.close(0))
  return server.url
}

test('an error is a problem body with code, request id and the parameter at fault', async (t) => {
  const url = await serve(
    t,
    new CapfleetError('bad-parameter', 'Slice must be 1 to 12288', { param: 'Slice', position: 3 }),
  )
  const answer = await fetch(`${url}/api/v1/pcap/single`)
  assert.equal(answer.status, 400)
  assert.match(answer.headers.get('content-type') ?? '', /^application\/problem\+json/)
  const body = (await answer.json()) as Record<string, unknown>
  assert.equal(body.requestId, answer.headers.get('capfleet-request-id'))
  assert.deepEqual(
    { ...body, requestId: 'x' },
    {
      type: 'urn:capfleet:error:bad-parameter',
      title: 'A parameter is missing, malformed or out of range',
      status: 400,
      detail: 'Slice must be 1 to 12288',
      code: 'bad-parameter',
      requestId: 'x',
      param: 'Slice',
      position: 3,
    },
  )
})

test('counters of problems used by alerts exist before the first one', async (t) => {
  const metrics = new Metrics()
  const app = createHttpApp({
    log: createLog('test', 'silent'),
    metrics,
    watchedProblems: ['queue-timeout'],
  })
  app.use(() => {
    throw new CapfleetError('queue-timeout', 'no stream became free')
  })
  const server = await listen(app.callback(), { host: '127.0.0.1', port: 0 }, new Metrics())
  t.after(() => server.close(0))
  const told = async () => /http_problems_total\{code="queue-timeout"\} (\d+)/.exec(await metrics.text())?.[1]
  assert.equal(await told(), '0')
  await fetch(server.url)
  assert.equal(await told(), '1')
})

describe('Strict-Transport-Security', () => {
  const told = async (
    options: Partial<HttpAppOptions>,
    { tls, proto }: { tls?: TempCertificate; proto?: string },
  ) => {
    const app = createHttpApp({ log: createLog('test', 'silent'), metrics: new Metrics(), ...options })
    const server = await listen(app.callback(), { host: '127.0.0.1', port: 0, tls }, new Metrics())
    const headers = proto === undefined ? {} : { 'x-forwarded-proto': proto }
    const answer = await httpGet(server.url, { headers, ...(tls && { tls: { ca: tls.ca } }) })
    await server.close(0)
    return answer.headers['strict-transport-security']
  }
  const behindProxy = { hstsMaxAgeS: 300, trustedProxies: ['127.0.0.0/8'] }

  test('is for who came by TLS to the program, where the setting says so', async () => {
    await using tls = await createTempCertificate()
    assert.equal(await told({ hstsMaxAgeS: 300 }, { tls }), 'max-age=300')
    assert.equal(await told({}, { tls }), undefined)
    assert.equal(await told({ hstsMaxAgeS: 300 }, {}), undefined)
  })

  test('is for who came by TLS to a trusted proxy', async () => {
    assert.equal(await told(behindProxy, { proto: 'https' }), 'max-age=300')
    assert.equal(await told(behindProxy, { proto: 'HTTPS, http' }), 'max-age=300')
    assert.equal(await told({ trustedProxies: ['127.0.0.0/8'] }, { proto: 'https' }), undefined)
  })

  test('is not sent on the word of a stranger, nor to who came by plain HTTP', async () => {
    assert.equal(await told({ hstsMaxAgeS: 300 }, { proto: 'https' }), undefined)
    for (const proto of ['http', 'http, https', '', undefined])
      assert.equal(await told(behindProxy, proto === undefined ? {} : { proto }), undefined, proto)
  })
})

test('legacy paths also carry Status and Str', async (t) => {
  const url = await serve(t, new CapfleetError('unknown-capture', 'no capture is called x'))
  for (const path of ['/pcap/del', '/devices/nyc1/stream/list', '/sysmaster/status']) {
    const body = (await (await fetch(url + path)).json()) as Record<string, unknown>
    assert.deepEqual([body.Status, body.Str], [false, 'no capture is called x'], path)
  }
})

test('429 and 503 say when to retry, 401 how to log in', async (t) => {
  for (const code of [
    'download-slots-exhausted',
    'compiler-busy',
    'too-many-logins',
    'too-many-requests',
  ] as const) {
    const busy = await fetch(await serve(t, new CapfleetError(code, 'not now', { retryAfterS: 7 })))
    assert.equal(busy.headers.get('retry-after'), '7', code)
  }
  const anonymous = await fetch(await serve(t, new CapfleetError('unauthenticated', 'who are you?')))
  assert.equal(anonymous.headers.get('www-authenticate'), 'Basic realm="capfleet", charset="UTF-8"')
})

test('a defect is a 500 that reveals no internals', async (t) => {
  const answer = await fetch(await serve(t, new Error('secret detail')))
  assert.equal(answer.status, 500)
  const text = await answer.text()
  assert.ok(text.includes('internal-error') && !text.includes('secret'))
})

test('an unknown path is a 404 problem', async (t) => {
  const answer = await fetch(`${await serve(t)}/nothing/here`)
  assert.equal(answer.status, 404)
  assert.equal(((await answer.json()) as { code: string }).code, 'not-found')
})

test('a long path is returned truncated', async (t) => {
  const answer = await fetch(`${await serve(t)}/${'x'.repeat(10_000)}`)
  const { detail } = (await answer.json()) as { detail: string }
  assert.match(detail, /^no such path: \/x{199}\.\.\.; .* the paths$/)
})

test('a port that is taken is a clear configuration error', async (t) => {
  const url = new URL(await serve(t))
  const port = Number(url.port)
  await assert.rejects(
    listen(() => undefined, { host: '127.0.0.1', port }, new Metrics()),
    /cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE/,
  )
})

test('slashes that follow one another are one', async (t) => {
  const url = await serve(t)
  const [plain, doubled] = await Promise.all([fetch(`${url}/fine`), fetch(`${url}//fine`)])
  const detail = async (answer: Response) => ((await answer.json()) as { readonly detail: string }).detail
  assert.deepEqual([doubled.status, await detail(doubled)], [plain.status, await detail(plain)])
})

test('no cache keeps an answer unless its handler says so, nor a problem in its place', async (t) => {
  const app = createHttpApp({ log: createLog('test', 'silent'), metrics: new Metrics() })
  app.use((ctx) => {
    if (ctx.path !== '/plain') ctx.set('Cache-Control', 'public, max-age=60')
    if (ctx.path === '/bad') throw new CapfleetError('bad-parameter', 'bad')
    ctx.body = 'x'
  })
  const server = await listen(app.callback(), { host: '127.0.0.1', port: 0 }, new Metrics())
  t.after(() => server.close(0))
  const cachingOf = async (path: string) => (await fetch(server.url + path)).headers.get('cache-control')
  assert.equal(await cachingOf('/plain'), 'no-store')
  assert.equal(await cachingOf('/file'), 'public, max-age=60')
  assert.equal(await cachingOf('/bad'), 'no-store')
})

test('a client that leaves before its answer counts as 499, never as an unknown path', async (t) => {
  const metrics = new Metrics()
  const app = createHttpApp({ log: createLog('test', 'silent'), metrics })
  app.use(async (ctx) => {
    const closed = once(ctx.res, 'close')
    app.emit('asked')
    await closed
    app.emit('left')
  })
  const server = await listen(app.callback(), { host: '127.0.0.1', port: 0 }, new Metrics())
  t.after(() => server.close(0))
  const asked = once(app, 'asked')
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
  await asked
  const left = once(app, 'left')
  socket.destroy()
  await left
  const counts = (await metrics.text())
    .split('\n')
    .filter((line) => line.startsWith('capfleet_http_requests_total{'))
  assert.deepEqual(counts, ['capfleet_http_requests_total{method="GET",status="499"} 1'])
})
