import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { ClientFailure, failureKindOf, problemFailure } from '../../../src/client/client-failure.ts'
import { nodeTransport } from '../../../src/client/command/access/node-transport.ts'
import { downloadTarget } from '../../../src/client/download-target.ts'
import { GatewayClient } from '../../../src/client/gateway-client.ts'
import { ERROR_KINDS } from '../../../src/shared/base/error.ts'
import { createTempCertificate } from '../../support/access/temp-certificate.ts'
import { pause } from '../../support/pause.ts'
import { startStubGateway } from '../../support/servers/stub-gateway.ts'

test('asks below the path of the address, with names and values as they are meant', async () => {
  const heard: (string | undefined)[] = []
  await using stub = await startStubGateway({
    'GET /packets/v1/devices': (req, res) => {
      heard.push(req.url, req.headers.authorization)
      res.end('{"devices":[]}')
    },
  })
  const credentials = { user: 'jörg', password: 'ä:b' }
  const client = new GatewayClient({ url: `${stub.url}/packets`, credentials }, nodeTransport())
  const { value } = await client.json('/v1/devices', { query: [['Filter', 'a&b=+c%']] })
  assert.deepEqual(value, { devices: [] })
  const authorization = `Basic ${Buffer.from('jörg:ä:b').toString('base64')}`
  assert.deepEqual(heard, ['/packets/v1/devices?Filter=a%26b%3D%2Bc%25', authorization])
})

test('a body that is cut is a failure that may be tried again', async () => {
  await using stub = await startStubGateway({
    'GET /v1/queue': (_req, res) => {
      res.writeHead(200, { 'Content-Length': 100 })
      res.write('{', () => res.destroy())
    },
  })
  const client = new GatewayClient({ url: stub.url }, nodeTransport())
  await assert.rejects(
    client.json('/v1/queue'),
    (error) => error instanceof ClientFailure && error.canRetry && error.code === 'connection-broken',
  )
})

test('a gateway with its own certificate is trusted when that is named', async () => {
  await using certificate = await createTempCertificate()
  const [cert, key] = await Promise.all([readFile(certificate.cert), readFile(certificate.key)])
  const server = createServer({ cert, key }, (_req, res) => void res.end('{}')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    await new GatewayClient({ url }, nodeTransport({ ca: certificate.ca })).json('/v1/devices')
    await assert.rejects(
      new GatewayClient({ url }, nodeTransport()).json('/v1/devices'),
      (error) => error instanceof ClientFailure && error.kind === 'access' && /--ca/.test(error.message),
    )
  } finally {
    server.close()
    server.closeAllConnections()
  }
})

test('every error of the gateway is of a kind', () => {
  const kinds = Object.entries(ERROR_KINDS).map(([code, { status }]) => [code, failureKindOf(status, code)])
  const of = Object.fromEntries(kinds) as Record<keyof typeof ERROR_KINDS, string>
  assert.deepEqual(
    [of['bad-bpf'], of.unauthenticated, of['insufficient-scope'], of['unknown-capture'], of['aged-out']],
    ['usage', 'access', 'access', 'not-found', 'not-found'],
  )
  assert.deepEqual(
    [
      of['queue-timeout'],
      of['user-quota'],
      of['device-timeout'],
      of['device-unreachable'],
      of['too-many-logins'],
    ],
    ['busy', 'busy', 'device', 'device', 'access'],
  )
})

test('an answer from something other than a gateway is reported as such', () => {
  const proxy = problemFailure(502, new Headers(), '<html>Bad Gateway</html>')
  assert.deepEqual([proxy.kind, proxy.canRetry], ['device', true])
  assert.match(proxy.message, /not a capfleet gateway/)
  const moved = problemFailure(301, new Headers({ location: 'https://new.example/' }), '')
  assert.match(moved.message, /redirects to https:\/\/new\.example\//)
})

test('a download is of a capture, of a part of one, or of a time', () => {
  const pathOf = (name: string | undefined, ...query: [string, string][]) => downloadTarget(name, query).path
  assert.equal(pathOf('demo'), '/api/v1/pcap/single')
  assert.equal(pathOf('demo', ['Start', '1'], ['Stop', '2']), '/api/v1/pcap/splittime')
  assert.equal(pathOf(undefined, ['TSBegin', '-1h'], ['TSEnd', 'now']), '/api/v1/pcap/timerange')
  assert.throws(() => pathOf(undefined), /name a capture, or give a time/)
  assert.throws(
    () => pathOf('demo', ['TSBegin', '-1h']),
    /is read as the name of a capture, which takes --start and --stop/,
  )
})

test('what a gateway that is being replaced does not take is asked again', async () => {
  const draining = { code: 'draining', detail: 'the gateway is shutting down' }
  const heard: string[] = []
  let turn = 0
  await using stub = await startStubGateway({
    'GET /v1/queue': (req, res) => {
      turn += 1
      heard.push(`${req.method} ${turn}`)
      if (turn === 1) req.socket.destroy()
      else if (turn === 2) res.writeHead(503, { 'Retry-After': '1' }).end(JSON.stringify(draining))
      else if (turn === 3) res.writeHead(503).end('<html>No server is available</html>')
      else res.end('{}')
    },
  })
  const client = new GatewayClient({ url: stub.url }, nodeTransport())
  assert.deepEqual((await client.json('/v1/queue')).value, {})
  assert.equal(heard.length, 4)
})

test('a change that may have reached the gateway is not sent again', async () => {
  let heard = 0
  await using stub = await startStubGateway({
    'POST /v1/exports': (req) => {
      heard += 1
      req.socket.destroy()
    },
  })
  const client = new GatewayClient({ url: stub.url }, nodeTransport())
  await assert.rejects(client.json('/v1/exports', { method: 'POST' }), { code: 'gateway-unreachable' })
  assert.equal(heard, 1)
})

test('an end while it is asked again is an end', async () => {
  const client = new GatewayClient({ url: 'http://127.0.0.1:1' }, nodeTransport())
  const ending = new AbortController()
  const asked = client.json('/v1/queue', { signal: ending.signal })
  void pause(300, 'it has failed once, and waits to ask again').then(() => ending.abort(new Error('enough')))
  await assert.rejects(asked, /enough/)
})
