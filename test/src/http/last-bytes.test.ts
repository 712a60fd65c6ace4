// What clients still have to be given when a server ends.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { CapfleetError } from '../../../src/base/error.ts'
import { Metrics } from '../../../src/base/metrics.ts'
import { cutResponse } from '../../../src/http/cut-response.ts'
import { listen, type RunningServer } from '../../../src/http/http-server.ts'
import { lastBytesDelivered } from '../../../src/http/last-bytes.ts'
import { eventually } from '../../support/eventually.ts'

/** More than a client that does not read is sent, less than the kernel takes of the server. */
const BODY = Buffer.alloc(600_000, 'x')
/** More than the kernel takes. */
const LARGE_BODY = Buffer.alloc(20_000_000, 'x')
/** No drain here may take so long. */
const DRAIN_MS = 60_000

/** A client that asks, and reads nothing of the answer. */
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
    limitMs: 5_000,
    message: 'the connection is closed here, and its bytes are not delivered',
  })
  assert.equal(isClosed, false)
  const received = await readAll(client)
  assert.ok(received.subarray(-BODY.length).equals(BODY))
  await closed
  assert.equal(await lastBytesDelivered(port, 0), 0)
})

test('the end waits no longer than it may for a client that takes nothing', async (t) => {
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

test('an answer that was ended is delivered whole, though Node still has most of it', async (t) => {
  const { server, client } = await ask(t, (res) => res.end(LARGE_BODY))
  const closed = server.close(DRAIN_MS)
  const received = await readAll(client)
  assert.ok(received.subarray(-LARGE_BODY.length).equals(LARGE_BODY))
  await closed
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

test('a stalled client is reset soon when its answer is cut because the program ends', async (t) => {
  const draining = new CapfleetError('draining', 'it ends')
  let cut: Promise<void> | undefined
  const { server, client } = await ask(t, (res) => {
    res.write(LARGE_BODY)
    cut = cutResponse(res, new Uint8Array(8), { reason: draining })
  })
  t.after(() => server.close(0))
  const reset = once(client, 'error')
  const startedMs = performance.now()
  await cut
  assert.ok(performance.now() - startedMs < 10_000, 'the grace of a pod would not last for the cut')
  client.resume()
  assert.equal(((await reset)[0] as NodeJS.ErrnoException).code, 'ECONNRESET')
})
