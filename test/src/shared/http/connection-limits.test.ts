import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { createLog } from '../../../../src/shared/base/log.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import {
  type ConnectionLimitSettings,
  connectionsAllowed,
} from '../../../../src/shared/http/connection-limits.ts'
import { createHttpApp } from '../../../../src/shared/http/http-app.ts'
import { listen } from '../../../../src/shared/http/http-server.ts'
import { createTempCertificate } from '../../../support/access/temp-certificate.ts'

interface Tls {
  readonly cert: string
  readonly key: string
}

async function serve(t: TestContext, limits: ConnectionLimitSettings, tls?: Tls) {
  const metrics = new Metrics()
  const app = createHttpApp({ log: createLog('test', 'silent'), metrics })
  app.use((ctx) => {
    ctx.body = 'hello'
  })
  const server = await listen(app.callback(), { host: '127.0.0.1', port: 0, tls, ...limits }, metrics)
  t.after(() => server.close(0))
  const port = Number(new URL(server.url).port)
  const metric = async (line: RegExp) => Number(line.exec(await metrics.text())?.[1] ?? 0)
  return {
    open: () => metric(/^capfleet_http_connections (\d+)$/m),
    refused: (reason: string) =>
      metric(new RegExp(`^capfleet_http_connections_refused_total\\{reason="${reason}"\\} (\\d+)$`, 'm')),
    connectFrom: async (localAddress: string): Promise<Socket> => {
      const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => undefined)
      await once(socket, 'connect')
      t.after(() => socket.destroy())
      return socket
    },
  }
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

/** The answer to a request, or '' if the connection is just closed. */
async function ask(socket: Socket, path = '/'): Promise<string> {
  const received = socket.toArray().catch(() => [] as Buffer[])
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  return Buffer.concat(await received).toString()
}

test('an address that has all the connections it may have gets 429, and others are served', async (t) => {
  const server = await serve(t, { maxConnections: 10, maxConnectionsPerAddress: 3 })
  const held = await Promise.all(Array.from({ length: 3 }, () => server.connectFrom('127.0.0.2')))
  const refused = await ask(await server.connectFrom('127.0.0.2'))
  assert.match(refused, /^HTTP\/1\.1 429 .*\r\n[\s\S]*Retry-After: 5\r\n[\s\S]*"code":"too-many-requests"/)
  assert.match(await ask(await server.connectFrom('127.0.0.3')), /^HTTP\/1\.1 200 /)
  assert.equal(await server.refused('address'), 1)
  const [first] = held
  assert.match(await ask(first as Socket), /^HTTP\/1\.1 200 /)
  assert.match(await ask(await server.connectFrom('127.0.0.2')), /^HTTP\/1\.1 200 /, 'one is free again')
})

test('when there is no connection left callers get 503', async (t) => {
  const server = await serve(t, { maxConnections: 2, maxConnectionsPerAddress: 2 })
  await Promise.all(['127.0.0.2', '127.0.0.3'].map((address) => server.connectFrom(address)))
  const refused = await ask(await server.connectFrom('127.0.0.4'))
  assert.match(
    refused,
    /^HTTP\/1\.1 503 .*\r\n[\s\S]*Retry-After: 5\r\n[\s\S]*"code":"connections-exhausted"/,
  )
  assert.equal(await server.refused('total'), 1)
  assert.equal(await server.open(), 2)
})

test('those who are refused take no place from others, however many they are', async (t) => {
  const server = await serve(t, { maxConnections: 4, maxConnectionsPerAddress: 2 })
  await Promise.all(Array.from({ length: 300 }, () => server.connectFrom('127.0.0.2')))
  assert.match(await ask(await server.connectFrom('127.0.0.4')), /^HTTP\/1\.1 200 /)
  assert.equal(await server.refused('address'), 298)
  assert.equal(await server.refused('total'), 0)
})

test('however many were refused and have left, the next one gets the reason', async (t) => {
  const server = await serve(t, { maxConnections: 4, maxConnectionsPerAddress: 1 })
  await server.connectFrom('127.0.0.2')
  for (let refused = 0; refused < 80; refused++)
    assert.match(await ask(await server.connectFrom('127.0.0.2')), /^HTTP\/1\.1 429 /, `the ${refused}th`)
})

test('over TLS a connection too many gets the reason, and a liveness probe is answered', async (t) => {
  await using certificate = await createTempCertificate()
  const server = await serve(t, { maxConnections: 1, maxConnectionsPerAddress: 1 }, certificate)
  await server.connectFrom('127.0.0.2')
  const askEncrypted = async (path: string) => {
    const socket = connectTls({ socket: await server.connectFrom('127.0.0.3'), ca: certificate.ca })
    return ask(socket, path)
  }
  assert.match(await askEncrypted('/'), /^HTTP\/1\.1 503 [\s\S]*"code":"connections-exhausted"/)
  assert.match(await askEncrypted('/livez'), /^HTTP\/1\.1 200 [\s\S]*Connection: close/)
  assert.equal(await server.refused('total'), 2)
})

test('over TLS a refused connection that agrees on nothing is closed', async (t) => {
  await using certificate = await createTempCertificate()
  const server = await serve(t, { maxConnections: 1, maxConnectionsPerAddress: 1 }, certificate)
  await server.connectFrom('127.0.0.2')
  await closed(await server.connectFrom('127.0.0.3'))
})

test('a probe for life is answered where there is no place, also while others flood', async (t) => {
  const server = await serve(t, { maxConnections: 4, maxConnectionsPerAddress: 4 })
  const flood = await Promise.all(Array.from({ length: 200 }, () => server.connectFrom('127.0.0.2')))
  const probe = () => server.connectFrom('127.0.0.5')
  assert.match(await ask(await probe(), '/livez'), /^HTTP\/1\.1 200 /)
  assert.match(await ask(await probe(), '/readyz'), /^HTTP\/1\.1 503 [\s\S]*"code":"connections-exhausted"/)
  assert.ok(flood.length > 0)
})

test('a liveness probe is answered even if refused connections of many addresses, and its own, are held open', async (t) => {
  const server = await serve(t, { maxConnections: 4, maxConnectionsPerAddress: 4 })
  for (const host of [2, 3, 4, 5, 6])
    await Promise.all(Array.from({ length: 30 }, () => server.connectFrom(`127.0.0.${host}`)))
  for (const host of [6, 7])
    assert.match(await ask(await server.connectFrom(`127.0.0.${host}`), '/livez'), /^HTTP\/1\.1 200 /)
})

test('a connection that is refused and asks nothing is closed', async (t) => {
  const server = await serve(t, { maxConnections: 1, maxConnectionsPerAddress: 1 })
  await server.connectFrom('127.0.0.2')
  await closed(await server.connectFrom('127.0.0.3'))
})

test('a trusted proxy may have all connections that there are', async (t) => {
  const limits = { maxConnections: 5, maxConnectionsPerAddress: 1, trustedProxies: ['127.0.0.2/32'] }
  const server = await serve(t, limits)
  for (let open = 0; open < 4; open++) await server.connectFrom('127.0.0.2')
  assert.match(await ask(await server.connectFrom('127.0.0.2')), /^HTTP\/1\.1 200 /)
  assert.match(await ask(await server.connectFrom('127.0.0.3')), /^HTTP\/1\.1 200 /)
})

test('as many connections are allowed as descriptors leave, with one to a device for each', () => {
  assert.equal(connectionsAllowed(1_024), 412)
  assert.equal(connectionsAllowed(10), 16)
  assert.equal(connectionsAllowed(1_048_576), 10_000)
  assert.equal(connectionsAllowed(Number.MAX_SAFE_INTEGER), 10_000)
})
