// Writing past Node's response depends on how this major version of Node does its own part: each case is pinned here.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  Agent,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { RawResponse } from '../../../../src/shared/http/raw-response.ts'

async function startServer(t: TestContext, answer: (res: ServerResponse) => Promise<void>): Promise<Server> {
  const server = createServer((_req, res) => {
    answer(res).catch((error: unknown) => res.destroy(error as Error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return server
}

async function answerRaw(res: ServerResponse, text: string): Promise<void> {
  const response = new RawResponse(res, {
    'X-A': 'b',
    ...(res.req.httpVersion === '1.1' ? { Trailer: 'X-T' } : {}),
  })
  const bytes = Buffer.from(text)
  const framed = [Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]
  await new Promise<void>((resolve) => response.write(response.isChunked ? framed : [bytes], resolve))
  await response.end({ 'X-T': 'end' })
}

function send(server: Server, text: string): Socket {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.write(text)
  return socket
}

test('a connection is used again after such a response', async (t) => {
  let connections = 0
  const server = await startServer(t, (res) => answerRaw(res, `for ${res.req.url}`))
  server.on('connection', () => {
    connections += 1
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  for (const path of ['/1', '/2', '/3']) {
    const sent = httpRequest({ port: (server.address() as AddressInfo).port, path, agent })
    sent.end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    assert.equal((await buffer(answer)).toString(), `for ${path}`)
    assert.deepEqual([answer.headers['x-a'], answer.trailers['x-t']], ['b', 'end'])
  }
  assert.equal(connections, 1)
})

test('an HTTP/1.0 client gets plain bytes, no trailers, and the end of the connection', async (t) => {
  const server = await startServer(t, (res) => answerRaw(res, 'all of it'))
  const socket = send(server, 'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n')
  const text = Buffer.concat((await socket.toArray()) as Buffer[]).toString()
  assert.match(text, /^HTTP\/1\.1 200 OK\r\n/)
  assert.doesNotMatch(text, /transfer-encoding|x-t: end/i)
  assert.ok(text.endsWith('\r\n\r\nall of it'))
})

test('a client that leaves ends the response, and the writes give their memory back', async (t) => {
  const outcome = Promise.withResolvers<unknown>()
  let freed = 0
  const server = await startServer(t, async (res) => {
    const response = new RawResponse(res, {})
    for (let writes = 0; writes < 50; writes++) response.write([Buffer.alloc(1_000_000)], () => freed++)
    await response.end({}).catch(outcome.resolve)
  })
  const socket = send(server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(socket, 'readable')
  socket.destroy()
  assert.match(String(await outcome.promise), /the client disconnected/)
  assert.equal(freed, 50)
})

test('a failure after the head leaves the body without an end', async (t) => {
  const server = await startServer(t, async (res) => {
    const response = new RawResponse(res, {})
    response.write([Buffer.from('5\r\nabcde\r\n')], () => undefined)
    throw new Error('no more')
  })
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  await assert.rejects(answer.text())
})

test('continues after a head and a part that Node wrote', async (t) => {
  const server = await startServer(t, async (res) => {
    res.writeHead(200)
    res.write('first, ')
    await answerRaw(res, 'then')
  })
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  assert.equal(await answer.text(), 'first, then')
})
