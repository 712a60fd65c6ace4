import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { allowLongBody } from '../../../../src/shared/http/body-time.ts'
import { listen } from '../../../../src/shared/http/http-server.ts'
import { connectTo } from '../../../support/clients/raw-client.ts'

const LIMIT_MS = 30_000

/** A client that has sent a part of a body, the server's side of its request, and what the client has received. */
async function begun(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const requests: [IncomingMessage, ServerResponse][] = []
  const server = await listen(
    (...request) => void requests.push(request),
    { host: '127.0.0.1', port: 0 },
    new Metrics(),
  )
  t.after(() => server.close(0))
  const socket = await connectTo(server.url)
  let received = ''
  socket.on('data', (piece: Buffer) => {
    received += piece.toString()
  })
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc')
  while (requests.length === 0) await new Promise((resolve) => setImmediate(resolve))
  const [[req, res] = []] = requests
  assert.ok(req && res)
  return { socket, req, res, received: () => received }
}

test('a body that does not arrive in time ends the connection, with 408', async (t) => {
  const { socket, received } = await begun(t)
  t.mock.timers.tick(LIMIT_MS - 1)
  assert.equal(socket.destroyed, false)
  t.mock.timers.tick(1)
  await new Promise<void>((resolve) => socket.once('close', () => resolve()))
  assert.match(received(), /^HTTP\/1\.1 408 Request Timeout\r\n/)
})

test('a long body may take any time, but not what nothing reads any more', async (t) => {
  const { socket, req, received } = await begun(t)
  const long = allowLongBody(req)
  t.mock.timers.tick(10 * LIMIT_MS)
  socket.write('def')
  assert.equal(String(await once(req, 'data')), 'abcdef'.slice(0, 3))
  assert.deepEqual([req.socket.destroyed, received()], [false, ''])
  long[Symbol.dispose]()
  t.mock.timers.tick(LIMIT_MS)
  // It may see a reset: what it sent has not been read.
  await new Promise<void>((resolve) => socket.once('close', () => resolve()))
})

test('a body that has arrived has no limit', async (t) => {
  const { socket, req, res, received } = await begun(t)
  socket.write('defghij')
  req.resume()
  await once(req, 'end')
  t.mock.timers.tick(10 * LIMIT_MS)
  res.end('well')
  await once(socket, 'data')
  assert.match(received(), /^HTTP\/1\.1 200 OK\r\n/)
  socket.destroy()
})
