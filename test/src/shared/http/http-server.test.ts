import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import type { ConnectionLimitSettings } from '../../../../src/shared/http/connection-limits.ts'
import { cutResponse } from '../../../../src/shared/http/cut-response.ts'
import { keepConnection, listen, type RunningServer } from '../../../../src/shared/http/http-server.ts'
import { createTempCertificate } from '../../../support/access/temp-certificate.ts'

type Handler = Parameters<typeof listen>[0]

async function serve(
  t: TestContext,
  handler: Handler,
  tls?: { cert: string; key: string },
  limits: ConnectionLimitSettings = {},
): Promise<RunningServer> {
  const server = await listen(handler, { host: '127.0.0.1', port: 0, tls, ...limits }, new Metrics())
  t.after(() => server.close(0))
  return server
}

/** Sends both requests at once. */
function pipeline(server: RunningServer) {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  socket.write('GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  return socket
}

test('a pipelined request begins when the answer before it has ended', async (t) => {
  const begun: string[] = []
  const first = Promise.withResolvers<void>()
  const server = await serve(t, async (req, res) => {
    begun.push(req.url ?? '')
    if (req.url === '/1') await first.promise
    res.end(`${begun}`)
  })
  const received = pipeline(server).toArray()
  await fetch(`${server.url}/other`)
  assert.deepEqual(begun, ['/1', '/other'])
  first.resolve()
  const text = Buffer.concat((await received) as Buffer[]).toString()
  assert.match(text, /\/1,\/otherHTTP\/1\.1 200 OK[\s\S]*\/1,\/other,\/2$/)
})

test('a pipelined request whose client leaves before its turn never begins', async (t) => {
  const begun: string[] = []
  const server = await serve(t, (req) => void begun.push(req.url ?? ''))
  const socket = pipeline(server)
  while (begun.length === 0)
    await fetch(server.url, { signal: AbortSignal.timeout(20) }).catch(() => undefined)
  socket.destroy()
  await once(socket, 'close')
  await fetch(`${server.url}/last`, { signal: AbortSignal.timeout(50) }).catch(() => undefined)
  assert.ok(!begun.includes('/2'))
})

test('a client that repeatedly sends some requests ahead is served forever', async (t) => {
  const server = await serve(t, (_req, res) => void res.end('x'))
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  t.after(() => socket.destroy())
  const AHEAD = 20
  let received = ''
  const answers = () => received.split('HTTP/1.1 200').length - 1
  for (let round = 1; round <= 5; round++) {
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(AHEAD))
    while (answers() < round * AHEAD) {
      const [bytes] = (await once(socket, 'data', { signal: AbortSignal.timeout(10_000) })) as [Buffer]
      received += bytes.toString('latin1')
    }
  }
  assert.equal(answers(), 5 * AHEAD)
})

test('a connection with too many requests waiting is closed, and costs nothing afterwards', async (t) => {
  const held = Promise.withResolvers<void>()
  t.after(() => held.resolve())
  let begun = 0
  const server = await serve(t, async (req, res) => {
    begun += 1
    if (req.url === '/slow') await held.promise
    res.end('x')
  })
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1').on('error', () => undefined)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n')
  const many = Buffer.from('GET /more HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000))
  let sent = 0
  for (; sent < 200_000 && !socket.destroyed; sent += 1_000) {
    if (!socket.write(many))
      await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed])
  }
  await closed
  assert.ok(sent < 200_000, `all of ${sent} requests were taken`)
  assert.equal(begun, 1)
  assert.equal(await (await fetch(`${server.url}/after`)).text(), 'x')
})

test('as many requests as a client may send ahead are all answered, in their order', async (t) => {
  const server = await serve(t, (req, res) => res.end(`<${req.url}>`))
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  const requests = Array.from(
    { length: 33 },
    (_, at) => `GET /${at} HTTP/1.1\r\nHost: x\r\n${at === 32 ? 'Connection: close\r\n' : ''}\r\n`,
  )
  socket.write(requests.join(''))
  const text = Buffer.concat(await socket.toArray()).toString()
  const answered = [...text.matchAll(/<\/(\d+)>/g)].map((match) => Number(match[1]))
  assert.deepEqual(answered, [...Array(33).keys()])
})

/** Sends one request, and then leaves the connection open. */
async function idleConnection(t: TestContext, server: RunningServer, path: string) {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  t.after(() => socket.destroy())
  const closed = once(socket, 'close')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await once(socket, 'data')
  return { socket, closed }
}

test('an idle connection without a user is closed soon, that of a user is not', async (t) => {
  const server = await serve(t, (req, res) => {
    if (req.url === '/user') keepConnection(req.socket)
    res.end()
  })
  const user = await idleConnection(t, server, '/user')
  const stranger = await idleConnection(t, server, '/')
  // Within 5 s. A user's connection is kept for 65 s.
  await stranger.closed
  const next = await idleConnection(t, server, '/')
  await next.closed
  assert.ok(!user.socket.destroyed, 'a user')
})

test('a stalled TLS handshake ends the connection', async (t) => {
  await using certificate = await createTempCertificate()
  const server = await serve(t, (_req, res) => res.end(), certificate)
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1').on('error', () => undefined)
  const startedMs = performance.now()
  await once(socket, 'close')
  assert.ok(performance.now() - startedMs < 60_000, 'Node alone waits two minutes')
})

test('speaks HTTPS with a certificate and its key', async (t) => {
  await using certificate = await createTempCertificate()
  const server = await serve(t, (_req, res) => res.end('over TLS'), certificate)
  assert.match(server.url, /^https:/)
  const { stdout } = await promisify(execFile)('curl', ['-fsS', '--cacert', certificate.cert, server.url])
  assert.equal(stdout, 'over TLS')
})

test('a body that is cut over TLS has no clean end, for HTTP/1.0 neither', async (t) => {
  await using certificate = await createTempCertificate()
  const handler: Handler = (_req, res) => {
    res.write('part')
    void cutResponse(res, new Uint8Array(8))
  }
  const server = await serve(t, handler, certificate)
  for (const [option, code] of [
    ['--http1.1', 18],
    ['--http1.0', 56],
  ] as const) {
    const curl = promisify(execFile)('curl', ['-sS', option, '--cacert', certificate.cert, server.url])
    await assert.rejects(curl, (error: { code: number }) => {
      assert.ok([code, 56].includes(error.code), `${option}: ${error.code}`)
      return true
    })
  }
})

test('refuses to start without the files of listen.tls', async () => {
  const tls = { cert: '/nowhere/cert.pem', key: '/nowhere/key.pem' }
  await assert.rejects(
    listen(() => undefined, { host: '127.0.0.1', port: 0, tls }, new Metrics()),
    (error) =>
      error instanceof CapfleetError && error.code === 'bad-config' && /listen\.tls/.test(error.message),
  )
})
