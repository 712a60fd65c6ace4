/**
 * Clients that hold connections, send too much or send too early, against a real gateway.
 *
 *   TRICKLERS=<n>   sockets that send one byte per second (1,000)
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { connectTo, rawAnswers, rawExchange } from '../../support/clients/raw-client.ts'
import { simulatedMerge, simulatedRange } from '../../support/devices/simulated-capture.ts'
import { type SimulatedStage, stageName, startSimulatedStage } from '../../support/live/simulated-stage.ts'
import { pause } from '../../support/pause.ts'
import { GATEWAY_AUTHORIZATION } from '../../support/processes/gateway-process.ts'

const TRICKLERS = Number(process.env.TRICKLERS ?? 1_000)
/** The gateway's limit is 10 s. Node itself would wait for a minute. */
const CLOSED_WITHIN_MS = 30_000
const GOOD_REQUESTS = 20
const GOOD_PAUSE_MS = 300
/** Before the first of them is closed: waiting for their end takes longer. */
const GOOD_WITHIN_MS = 8_000
const PACKETS = 100
const DOWNLOAD = `/devices/${stageName(0, 0)}/api/v1/pcap/timerange?${simulatedRange(PACKETS)}&Wait=20`

describe('hostile clients', () => {
  let stage: SimulatedStage
  before(async () => {
    const pace = { packets: PACKETS + 1, packetsPerTick: 50, tickMs: 5 }
    stage = await startSimulatedStage({ groups: 1, devicesPerGroup: 1, pace })
    // On a Redis that is new to it, the scheduler grants nothing for its first seconds.
    await fetch(stage.gateway.url + DOWNLOAD, { headers: { authorization: GATEWAY_AUTHORIZATION } })
  })
  after(() => stage[Symbol.asyncDispose]())

  test(`${TRICKLERS} sockets that send a byte a second are closed, and delay no one else`, async (t) => {
    const { url } = stage.gateway
    const trickling = trickle(url, TRICKLERS, CLOSED_WITHIN_MS)
    const slowestMs = await goodRequests(url)
    const { open, lastMs } = await trickling
    t.diagnostic(
      `the last was closed after ${Math.round(lastMs)} ms, the slowest good request took ${slowestMs} ms`,
    )
    assert.equal(open, 0, 'all are closed')
    assert.ok(slowestMs < GOOD_WITHIN_MS)
  })

  test('negative control: sockets that a server does not close are counted as open', async () => {
    const server = createServer({ headersTimeout: 0, requestTimeout: 0 }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { open } = await trickle(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 10, 1_500)
    assert.equal(open, 10)
    server.closeAllConnections()
    server.close()
  })

  const HEADER_BYTES_OVER = 70_000
  const get = (target: string, fields: string): string => `GET ${target} HTTP/1.1\r\n${fields}\r\n\r\n`
  const REFUSED: Readonly<Record<string, readonly [request: string, status: number]>> = {
    'a header that is too large': [get('/livez', `Host: x\r\nX: ${'x'.repeat(HEADER_BYTES_OVER)}`), 431],
    'many headers that are too large': [
      get('/livez', `Host: x${`\r\nX: ${'y'.repeat(90)}`.repeat(900)}`),
      431,
    ],
    'a target that is too long': [get(`/${'x'.repeat(HEADER_BYTES_OVER)}`, 'Host: x'), 431],
    'no host': [get('/livez', 'X: y'), 400],
    'a method that is none': ['G@T /livez HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    'a version that is none': ['GET /livez HTTP/9.9\r\nHost: x\r\n\r\n', 400],
    'a header without a colon': [get('/livez', 'Host: x\r\nnothing'), 400],
    'a zero byte in a header': [get('/livez', 'Host: x\r\nX: a\0b'), 400],
    'two lengths': [get('/livez', 'Host: x\r\nContent-Length: 1\r\nContent-Length: 2'), 400],
    'a length and chunks': [get('/livez', 'Host: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked'), 400],
    'a space before the colon': [get('/livez', 'Host : x'), 400],
    'TLS instead of HTTP': ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400],
  }

  for (const [what, [request, status]] of Object.entries(REFUSED)) {
    test(`${what}: ${status}, and the connection is closed`, async () => {
      const bytes = await rawExchange(stage.gateway.url, Buffer.from(request, 'latin1'))
      assert.deepEqual(
        rawAnswers(bytes).map((answer) => answer.status),
        [status],
      )
      assert.equal((await fetch(`${stage.gateway.url}/livez`)).status, 200)
    })
  }

  test('requests sent before their turn are answered in order, each with its own bytes', async () => {
    const authorized = `Host: x\r\nAuthorization: ${GATEWAY_AUTHORIZATION}`
    const requests = [
      get('/livez', 'Host: x'),
      get(DOWNLOAD, authorized),
      get('/livez', 'Host: x'),
      get(DOWNLOAD, authorized),
      get('/livez', 'Host: x\r\nConnection: close'),
    ]
    const answers = rawAnswers(await rawExchange(stage.gateway.url, requests.join('')))
    const file = simulatedMerge([0], PACKETS)
    const expected = [Buffer.from('ok\n'), file, Buffer.from('ok\n'), file, Buffer.from('ok\n')]
    // A download may end its connection; everything received before must be right.
    assert.ok(answers.length >= 2)
    for (const [index, { status, body, isWhole }] of answers.entries()) {
      assert.deepEqual([status, isWhole], [200, true])
      assert.ok(expected[index]?.equals(body), `answer ${index}`)
    }
  })

  test('a body after a request for a download is not taken for a request', async () => {
    const fields = `Host: x\r\nAuthorization: ${GATEWAY_AUTHORIZATION}\r\nContent-Length: 39\r\nConnection: close`
    const smuggled = 'GET /v1/devices HTTP/1.1\r\nHost: x.y.z\r\n\r'
    const answers = rawAnswers(await rawExchange(stage.gateway.url, get(DOWNLOAD, fields) + smuggled))
    assert.equal(answers.length, 1)
    assert.ok(
      answers[0]?.isWhole === false ||
        answers[0]?.status !== 200 ||
        answers[0].body.equals(simulatedMerge([0], PACKETS)),
    )
  })
})

/**
 * Opens sockets that never finish their request. Returns how many are open in the end, and when the last one was
 * closed.
 */
async function trickle(
  url: string,
  count: number,
  limitMs: number,
): Promise<{ readonly open: number; readonly lastMs: number }> {
  const sockets = await Promise.all(Array.from({ length: count }, () => connectTo(url)))
  const startedMs = performance.now()
  let open = count
  let lastMs = 0
  const allClosed = Promise.withResolvers<void>()
  for (const socket of sockets) {
    socket.write('GET /livez HTTP/1.1\r\nHost: x\r\nX: ')
    const drip = setInterval(() => socket.write('x'), 1_000)
    socket.resume()
    socket.once('close', () => {
      clearInterval(drip)
      open -= 1
      lastMs = performance.now() - startedMs
      if (open === 0) allClosed.resolve()
    })
  }
  await Promise.race([
    allClosed.promise,
    pause(limitMs, 'the limit that the product sets has passed', { ref: false }),
  ])
  const left = open
  for (const socket of sockets) socket.destroy()
  return { open: left, lastMs }
}

/** Downloads one after another while the sockets trickle; returns the duration of the slowest. */
async function goodRequests(url: string): Promise<number> {
  const file = simulatedMerge([0], PACKETS)
  let slowestMs = 0
  for (let request = 0; request < GOOD_REQUESTS; request += 1) {
    const startedMs = performance.now()
    const answer = await fetch(url + DOWNLOAD, { headers: { authorization: GATEWAY_AUTHORIZATION } })
    assert.ok(Buffer.from(await answer.arrayBuffer()).equals(file))
    slowestMs = Math.max(slowestMs, Math.round(performance.now() - startedMs))
    await pause(GOOD_PAUSE_MS, 'a good client asks now and then')
  }
  return slowestMs
}
