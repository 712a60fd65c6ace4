// How clients get their last bytes when a server shuts down.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { cutResponse } from '../../../../src/shared/http/cut-response.ts'
import { listen, type RunningServer } from '../../../../src/shared/http/http-server.ts'
import { lastBytesDelivered } from '../../../../src/shared/http/last-bytes.ts'
import { eventually } from '../../../support/eventually.ts'

/** More than is sent to a client that does not read, less than the kernel accepts from the server. */
const BODY = Buffer.alloc(600_000, 'x')
/** No drain here may take this long. */
const DRAIN_MS = 60_000

/** A client that sends a request and does not read the answer. */
async function ask(
  t: TestContext,
  respond: (res: ServerResponse) => void,
): Promise<{ server: RunningServer; port: number; client: Socket }> {
  const asked = Promise.withResolvers<void>()
  const onRequest = (_req: unknown, res: ServerResponse) => {
    respond(res)
    asked.resolve()
  }
  const server = await listen(onRequest, { host: '127.0.0.1', port: 0 }, new Metrics())
  const port = Number(new URL(server.url).port)
  const client = connect(port, '127.0.0.1')
  t.after(() => client.destroy())
  client.pause()
  client.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  await asked.promise
  return { server, port, client }
}

const ESTABLISHED = '01'
const FIN_WAIT1 = '04'

/** The states of the kernel's connections at the local port. */
async function tcpStates(port: number): Promise<readonly string[]> {
  const text = await readFile('/proc/self/net/tcp', 'latin1')
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const lines = text.split('\n').map((line) => line.trim().split(/\s+/, 4))
  return lines.flatMap(([, at = '', , state = '']) => (at.endsWith(local) ? state : []))
}

async function readAll(client: Socket): Promise<Buffer> {
  const pieces: Buffer[] = []
  client.on('data', (bytes: Buffer) => pieces.push(bytes))
  client.resume()
  await once(client, 'end')
  return Buffer.concat(pieces)
}

test('a server has not ended before a slow client has the bytes that the kernel took', async (t) => {
  const { server, port, client } = await ask(t, (res) => res.end(BODY))
  let isClosed = false
  const closed = server.close(DRAIN_MS).then(() => {
    isClosed = true
  })
  await eventually(async () => (await lastBytesDelivered(port, 0)) === 1, {
    message: 'the connection is closed here, and its bytes are not delivered',
  })
  assert.equal(isClosed, false)
  const received = await readAll(client)
  assert.ok(received.subarray(-BODY.length).equals(BODY))
  await closed
  assert.equal(await lastBytesDelivered(port, 0), 0)
})

test('shutdown does not exceed its limit for a client that does not read', async (t) => {
  const { server, port } = await ask(t, (res) => res.end(BODY))
  await server.close(500)
  assert.equal(await lastBytesDelivered(port, 0), 1)
})

test('an answer that is cut because the program ends leaves nothing to be delivered', async (t) => {
  const draining = new CapfleetError('draining', 'it ends')
  const { server, port, client } = await ask(t, (res) => {
    res.write(BODY)
    void cutResponse(res, new Uint8Array(8), { reason: draining })
  })
  const reset = once(client, 'error')
  await server.close(DRAIN_MS)
  assert.equal(await lastBytesDelivered(port, 0), 0)
  client.resume()
  assert.equal(((await reset)[0] as NodeJS.ErrnoException).code, 'ECONNRESET')
})

test('what has no end at the deadline is reset', async (t) => {
  const { server, port, client } = await ask(t, (res) => void res.write(BODY))
  const reset = once(client, 'error')
  await server.close(100)
  assert.equal(await lastBytesDelivered(port, 0), 0)
  client.resume()
  assert.equal(((await reset)[0] as NodeJS.ErrnoException).code, 'ECONNRESET')
})

/** More than the kernel accepts from a server whose client does not read. */
const LARGE_BODY = Buffer.alloc(20_000_000, 'x')

test('an answer that waits in the process is given to its slow client, too', async (t) => {
  const { server, client } = await ask(t, (res) => res.end(LARGE_BODY))
  const closed = server.close(DRAIN_MS)
  const received = await readAll(client)
  assert.ok(received.subarray(-LARGE_BODY.length).equals(LARGE_BODY))
  await closed
})

test('a client that sends another request after its last answer loses nothing of it', async (t) => {
  const ended = Promise.withResolvers<void>()
  const { server, port, client } = await ask(t, async (res) => {
    await ended.promise
    res.end(BODY)
  })
  const closed = server.close(DRAIN_MS)
  ended.resolve()
  await eventually(async () => (await tcpStates(port)).includes(FIN_WAIT1), { message: 'our side has ended' })
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const received = await readAll(client)
  assert.ok(received.subarray(-BODY.length).equals(BODY))
  await closed
})

test('a client that reads nothing until the time limit gets a reset', async (t) => {
  const ended = Promise.withResolvers<void>()
  const { server, port, client } = await ask(t, async (res) => {
    await ended.promise
    res.end(BODY)
  })
  const reset = once(client, 'error')
  const closed = server.close(1_000)
  ended.resolve()
  await closed
  assert.equal(await lastBytesDelivered(port, 0), 0)
  client.resume()
  assert.equal(((await reset)[0] as NodeJS.ErrnoException).code, 'ECONNRESET')
})

test('a request that is on its way when the server begins to close is answered', async (t) => {
  let asked = 0
  const onRequest = (_req: unknown, res: ServerResponse) => {
    asked += 1
    res.end('x')
  }
  const server = await listen(onRequest, { host: '127.0.0.1', port: 0 }, new Metrics())
  const client = connect(Number(new URL(server.url).port), '127.0.0.1')
  t.after(() => client.destroy())
  client.write('GET / HTTP/1.1\r\nHost: x\r\n')
  await eventually(async () => (await tcpStates(Number(new URL(server.url).port))).includes(ESTABLISHED), {
    message: 'the connection is there',
  })
  const closed = server.close(DRAIN_MS)
  client.write('\r\n')
  assert.match((await readAll(client)).toString(), /^HTTP\/1\.1 200 [\s\S]*Connection: close[\s\S]*x$/)
  await closed
  assert.equal(asked, 1)
})

test('a file is cut soon after the program ends, although its client does not read', async (t) => {
  const draining = new CapfleetError('draining', 'it ends')
  const cut = Promise.withResolvers<void>()
  const { server, client } = await ask(t, (res) => {
    res.write(LARGE_BODY)
    cutResponse(res, new Uint8Array(8), { reason: draining }).then(cut.resolve, cut.reject)
  })
  const reset = once(client, 'error')
  const beganMs = performance.now()
  await cut.promise
  assert.ok(performance.now() - beganMs < 10_000)
  client.resume()
  assert.equal(((await reset)[0] as NodeJS.ErrnoException).code, 'ECONNRESET')
  await server.close(DRAIN_MS)
})

test('a chunked answer with trailers is delivered to its last byte', async (t) => {
  const { server, client } = await ask(t, (res) => {
    res.writeHead(200, { Trailer: 'Sum' })
    res.write(LARGE_BODY)
    res.addTrailers({ Sum: '7' })
    res.end()
  })
  const closed = server.close(DRAIN_MS)
  const received = await readAll(client)
  assert.ok(received.length > LARGE_BODY.length)
  assert.ok(received.subarray(-20).toString().endsWith('0\r\nSum: 7\r\n\r\n'))
  await closed
})
