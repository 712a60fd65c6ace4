// Connections that are kept, and lost just when a call that only reads is about to use them.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Socket,
  type Server as TcpServer,
} from 'node:net'
import { describe, test } from 'node:test'
import { Device } from '../../../../src/gateway/device/device.ts'
import { DeviceClient } from '../../../../src/gateway/device/device-client.ts'
import { passRead } from '../../../../src/gateway/device/passed-call.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { Secret } from '../../../../src/shared/base/secret.ts'
import { createTempCertificate } from '../../../support/access/temp-certificate.ts'
import { eventually } from '../../../support/eventually.ts'
import { httpGet, httpOpen } from '../../../support/http-get.ts'

const HELLO = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'
/** The timeout of connections that must not expire. */
const TIMEOUT_MS = 60_000
/**
 * For connections whose expiry the test waits for. Two calls in a row must be faster, or their connection is not kept.
 */
const SHORT_MS = 1_000

/** A device whose answer to each request is given, and which records what it has seen. */
class ScriptedDevice {
  readonly server: TcpServer
  readonly sockets: Socket[] = []
  /** Heads of requests, each with the number of its connection. */
  readonly requests: [connection: number, head: string][] = []
  /** What it does with a request; requests are numbered over all connections, starting at 0. */
  answer: (socket: Socket, number: number) => void = (socket) => socket.write(HELLO)

  constructor() {
    this.server = createTcpServer((socket) => {
      const connection = this.sockets.push(socket) - 1
      socket.on('error', () => undefined)
      socket.on('data', (head) => {
        const number = this.requests.push([connection, head.toString('latin1')]) - 1
        this.answer(socket, number)
      })
    })
  }
}

interface Stage {
  readonly device: ScriptedDevice
  url: string
  /** The errors that passRead() was rejected with, in order. */
  readonly failures: unknown[]
  /** Runs when a call has arrived and before it is forwarded. */
  beforeCall: () => void
}

async function onStage(play: (stage: Stage) => Promise<void>, timeoutMs = TIMEOUT_MS): Promise<void> {
  const device = new ScriptedDevice()
  const stage: Stage = { device, url: '', failures: [], beforeCall: () => undefined }
  let client: DeviceClient | undefined
  const front = createServer((req, res) => {
    stage.beforeCall()
    if (client === undefined) return
    const call = { target: req.url ?? '', caller: 'ann', timeoutMs }
    passRead(client, call, req, res).catch((error: unknown) => {
      stage.failures.push(error)
      res.writeHead(error instanceof CapfleetError ? error.kind.status : 500).end()
    })
  })
  const target = new Device({
    name: 'd',
    url: await listen(device.server),
    user: 'u',
    password: new Secret('p'),
  })
  client = new DeviceClient(target, { connectTimeoutMs: timeoutMs, idleTimeoutMs: timeoutMs })
  stage.url = await listen(front)
  try {
    await play(stage)
  } finally {
    front.closeAllConnections()
    front.close()
    client.close()
    for (const socket of device.sockets) socket.destroy()
    device.server.close()
  }
}

async function listen(server: Server | TcpServer): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const bodyOf = async (url: string) => String((await httpGet(url)).body)
const codesOf = (failures: readonly unknown[]) =>
  failures.map((error) => (error instanceof CapfleetError ? error.code : String(error)))

describe('a kept connection', () => {
  for (const [how, close] of [
    ['closes', (socket: Socket) => socket.destroy()],
    ['resets', (socket: Socket) => socket.resetAndDestroy()],
  ] as const) {
    test(`that the device ${how} at the moment of a call: the call is answered, and seen once`, () =>
      onStage(async (stage) => {
        const { device, url } = stage
        assert.equal(await bodyOf(`${url}/first`), 'hello')
        // Our side notices this only after it has sent the request.
        stage.beforeCall = () => device.sockets[0] && close(device.sockets[0])
        assert.equal(await bodyOf(`${url}/second`), 'hello')
        assert.deepEqual(
          device.requests.map(([connection, head]) => [connection, head.split(' ', 2)[1]]),
          [
            [0, '/first'],
            [1, '/second'],
          ],
        )
        assert.deepEqual(stage.failures, [])
      }))
  }

  test('is asked again over a new one once only', () =>
    onStage(async ({ device, url, failures }) => {
      assert.equal(await bodyOf(url), 'hello')
      device.answer = (socket) => socket.destroy()
      assert.equal((await httpGet(url)).status, 502)
      assert.deepEqual(
        device.requests.map(([connection]) => connection),
        [0, 0, 1],
      )
      assert.deepEqual(codesOf(failures), ['device-unreachable'])
    }))

  test('is not asked again after a byte of an answer, nor after a time-out', () =>
    onStage(async ({ device, url, failures }) => {
      assert.equal(await bodyOf(url), 'hello')
      device.answer = (socket) => socket.end('H')
      assert.equal((await httpGet(url)).status, 502)
      device.answer = (socket) => socket.write(HELLO)
      assert.equal(await bodyOf(url), 'hello')
      device.answer = () => undefined
      assert.equal((await httpGet(url)).status, 504)
      assert.equal(device.requests.length, 4)
      assert.deepEqual(codesOf(failures), ['device-unreachable', 'device-timeout'])
    }, SHORT_MS))

  test('that is unused for the timeout is closed', () =>
    onStage(async ({ device, url }) => {
      assert.equal(await bodyOf(url), 'hello')
      const [socket] = device.sockets
      assert.ok(socket)
      if (!socket.destroyed) await once(socket, 'close')
      assert.equal(await bodyOf(url), 'hello')
      assert.equal(device.sockets.length, 2)
    }, SHORT_MS))

  test('on which the device says something unasked is not used for the next call', () =>
    onStage(async ({ device, url }) => {
      assert.equal(await bodyOf(url), 'hello')
      const [socket] = device.sockets
      socket?.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil')
      if (socket?.destroyed === false) await once(socket, 'close')
      assert.equal(await bodyOf(url), 'hello')
      assert.equal(device.sockets.length, 2)
    }))

  for (const [what, answer, body] of [
    ['sends more than its Content-Length', `${HELLO}HTTP/1.1 200 OK\r\n`, 'hello'],
    ['says Connection: close', HELLO.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'), 'hello'],
    ['speaks HTTP/1.0', HELLO.replace('1.1', '1.0'), 'hello'],
    ['announces a body for a 204', 'HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n', ''],
  ] as const) {
    test(`does not outlive an answer that ${what}`, () =>
      onStage(async ({ device, url, failures }) => {
        device.answer = (socket) => socket.write(answer)
        assert.equal(await bodyOf(url), body)
        assert.equal(await bodyOf(url), body)
        assert.deepEqual(
          device.requests.map(([connection]) => connection),
          [0, 1],
        )
        assert.deepEqual(failures, [])
      }))
  }

  test('continues after answers without a body', () =>
    onStage(async ({ device, url }) => {
      const answers = [
        'HTTP/1.1 204 None\r\n\r\n',
        'HTTP/1.1 304 Same\r\nETag: "a"\r\n\r\n',
        'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n',
        HELLO,
      ]
      device.answer = (socket, number) => socket.write(answers[number] ?? '')
      const seen: unknown[] = []
      for (const method of ['GET', 'GET', 'HEAD', 'GET']) {
        const { status, headers, body } = await httpGet(url, { method })
        seen.push([status, headers.etag, headers['content-length'], String(body)])
      }
      assert.deepEqual(seen, [
        [204, undefined, undefined, ''],
        [304, '"a"', undefined, ''],
        [200, undefined, '9', ''],
        [200, undefined, '5', 'hello'],
      ])
      assert.equal(device.sockets.length, 1)
    }))
})

test('an answer that lasts until the device closes is passed on whole', () =>
  onStage(async ({ device, url }) => {
    device.answer = (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nall of it')
    assert.equal(await bodyOf(url), 'all of it')
  }))

test('every byte is passed on as it came, at once or in parts', () =>
  onStage(async ({ device, url }) => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, value) => value))
    const answers = [
      [Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 256\r\n\r\n'), bytes])],
      ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100\r\n', bytes, '\r\n0\r\n\r\n'],
    ]
    device.answer = (socket, number) => {
      const [first = '', ...others] = answers[number] ?? []
      socket.write(first, () => setImmediate(() => socket.write(Buffer.concat(others.map(Buffer.from)))))
    }
    for (const _ of answers) assert.deepEqual((await httpGet(url)).body, bytes)
  }))

test('interim answers are left out, and endless ones are a failure', () =>
  onStage(async ({ device, url, failures }) => {
    device.answer = (socket) => socket.write(`HTTP/1.1 103 Early\r\nLink: <x>\r\n\r\n${HELLO}`)
    assert.equal(await bodyOf(url), 'hello')
    device.answer = (socket) => socket.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(1_000))
    assert.equal((await httpGet(url)).status, 502)
    assert.deepEqual(codesOf(failures), ['device-protocol'])
  }))

test('a device is read no faster than the client reads', () =>
  onStage(async ({ device, url }) => {
    const bodyBytes = 256 * 1024 * 1024
    const piece = Buffer.alloc(64 * 1024)
    let writtenBytes = 0
    device.answer = (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${bodyBytes}\r\n\r\n`)
      const more = () => {
        if (socket.destroyed) return
        writtenBytes += piece.length
        if (writtenBytes <= bodyBytes) socket.write(piece, more)
      }
      more()
    }
    using open = await httpOpen(url)
    open.response.pause()
    // The timeout for a silent device ends a call whose client has stopped reading.
    await eventually(() => device.sockets[0]?.destroyed === true, { message: 'the call has ended' })
    assert.ok(writtenBytes < bodyBytes / 4, `${writtenBytes} bytes were taken`)
  }, SHORT_MS))

test('a device with TLS is asked if its certificate can be verified, otherwise not', async () => {
  await using certificate = await createTempCertificate()
  const [cert, key] = await Promise.all([readFile(certificate.cert), readFile(certificate.key)])
  let connections = 0
  const server = createTlsServer({ cert, key }, (req, res) => res.end(`${req.url}`.repeat(20_000)))
  server.on('secureConnection', () => connections++)
  const url = (await listen(server)).replace('http:', 'https:')
  const limits = { connectTimeoutMs: 5_000, idleTimeoutMs: 5_000 }
  const clientOf = (name: string, ca?: string) =>
    new DeviceClient(new Device({ name, url, ca, user: 'u', password: new Secret('p') }), limits)
  const known = clientOf('known', certificate.ca)
  const unknown = clientOf('unknown')
  const front = createServer((req, res) => {
    const call = { target: req.url ?? '', caller: 'ann', timeoutMs: 5_000 }
    passRead(req.url === '/x' ? unknown : known, call, req, res).catch((error) => {
      res.writeHead(502).end(error instanceof CapfleetError ? error.code : String(error))
    })
  })
  const frontUrl = await listen(front)
  try {
    for (const path of ['/a', '/b']) assert.equal(await bodyOf(frontUrl + path), path.repeat(20_000))
    assert.equal(connections, 1)
    assert.equal(await bodyOf(`${frontUrl}/x`), 'device-unreachable')
  } finally {
    known.close()
    for (const each of [front, server]) {
      each.closeAllConnections()
      each.close()
    }
  }
})
