import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { Device } from '../../../../src/gateway/device/device.ts'
import { type PassedUpload, passUpload } from '../../../../src/gateway/device/device-upload.ts'
import { Secret } from '../../../../src/shared/base/secret.ts'
import { createTempCertificate } from '../../../support/access/temp-certificate.ts'
import { eventually } from '../../../support/eventually.ts'
import { TEST_LIMIT_MS } from '../../../support/test-limits.ts'

const PIECE_BYTES = 65_536

/** A file of this many pieces, which counts those that were read. */
function fileOf(pieces: number) {
  const file = {
    read: 0,
    announcedBytes: undefined,
    async *pieces(): AsyncGenerator<Buffer, void> {
      for (; file.read < pieces; file.read += 1) yield Buffer.alloc(PIECE_BYTES, file.read)
    },
  }
  return file
}

async function deviceOf(t: TestContext, server: Server, scheme = 'http', ca?: string): Promise<Device> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`
  return new Device({ name: 'd0', url, user: 'u', password: new Secret('p'), ca })
}

const upload = (device: Device, file: ReturnType<typeof fileOf>, more: Partial<PassedUpload> = {}) =>
  passUpload(device, {
    target: '/v1/captures?StreamName=a',
    caller: 'c',
    file,
    timeoutMs: TEST_LIMIT_MS,
    signal: new AbortController().signal,
    ...more,
  })

async function bytesOf(req: IncomingMessage): Promise<number> {
  let bytes = 0
  for await (const piece of req as AsyncIterable<Buffer>) bytes += piece.length
  return bytes
}

test('a file reaches a device over TLS, with the credentials of the gateway', async (t) => {
  await using certificate = await createTempCertificate()
  const [cert, key] = await Promise.all([readFile(certificate.cert), readFile(certificate.key)])
  let seen: IncomingMessage['headers'] = {}
  const answer: RequestListener = (req, res) => {
    seen = req.headers
    void bytesOf(req).then((bytes) => res.writeHead(201).end(String(bytes)))
  }
  const device = await deviceOf(t, createTlsServer({ cert, key }, answer), 'https', certificate.ca)
  const { status, body } = await upload(device, fileOf(50))
  assert.deepEqual([status, body.toString()], [201, String(50 * PIECE_BYTES)])
  assert.deepEqual([seen.authorization, seen['capfleet-caller']], [`Basic ${btoa('u:p')}`, 'c'])
  const stranger = await deviceOf(t, createTlsServer({ cert, key }, answer), 'https')
  await assert.rejects(upload(stranger, fileOf(1)), { code: 'device-unreachable' })
})

test('nothing is read for a device that refuses, or that does not answer', async (t) => {
  const refusing = createServer().on('checkContinue', (_req, res) => res.writeHead(409).end('taken'))
  const file = fileOf(1)
  const { status, body } = await upload(await deviceOf(t, refusing), file)
  assert.deepEqual([status, body.toString()], [409, 'taken'])
  const silent = createServer().on('checkContinue', () => undefined)
  await assert.rejects(upload(await deviceOf(t, silent), file, { timeoutMs: 50 }), {
    code: 'device-timeout',
    message: 'device d0 did not accept the upload within 0.05 s',
  })
  assert.equal(file.read, 0)
})

test('a device that accepts no more stops the reading, and is given up', async (t) => {
  const full = createServer().on('checkContinue', (_req, res) => res.writeContinue())
  const device = await deviceOf(t, full)
  const file = fileOf(1_000_000)
  await assert.rejects(upload(device, file, { timeoutMs: 500 }), {
    code: 'device-timeout',
    // On a busy machine, the time may be over before the file is asked for.
    message: /^device d0 did not accept (more of the file|the upload) within 0\.5 s$/,
  })
  // What the kernel and the two programs hold, of 64 GiB.
  assert.ok(file.read * PIECE_BYTES < 64 * 2 ** 20, `${file.read} pieces were read`)
})

test('a device that never ends its answer is given up', async (t) => {
  const dripping = createServer().on('checkContinue', (_req, res) => res.writeHead(201).write('{'))
  await assert.rejects(upload(await deviceOf(t, dripping), fileOf(1), { timeoutMs: 500 }), {
    code: 'device-timeout',
    // On a busy machine, the time may be over before its answer begins.
    message: /^device d0 did not (send the rest of its answer|accept the upload) within 0\.5 s$/,
  })
})

test('an answer in the middle of the file ends the reading', async (t) => {
  const hasty = createServer().on('checkContinue', (req, res) => {
    res.writeContinue()
    req.once('data', () => {
      res.writeHead(413).end('too large')
      req.resume()
    })
  })
  const file = fileOf(1_000_000)
  const { status, body } = await upload(await deviceOf(t, hasty), file)
  assert.deepEqual([status, body.toString()], [413, 'too large'])
  assert.ok(file.read < 1_000_000)
})

test('a device that breaks off, and a caller who leaves: the request ends, and so does the device side', async (t) => {
  const breaking = createServer().on('checkContinue', (req, res) => {
    res.writeContinue()
    req.once('data', () => req.socket.resetAndDestroy())
  })
  await assert.rejects(upload(await deviceOf(t, breaking), fileOf(1_000_000)), { code: 'device-unreachable' })

  const leaving = new AbortController()
  let isClosed = false
  const patient = createServer().on('checkContinue', (req, res) => {
    res.writeContinue()
    req.on('error', () => undefined)
    res.once('close', () => {
      isClosed = true
    })
    leaving.abort(new Error('the caller has left'))
  })
  const left = upload(await deviceOf(t, patient), fileOf(1_000_000), { signal: leaving.signal })
  await assert.rejects(left, /the caller has left/)
  await eventually(() => isClosed, { message: 'the device notices' })
})
