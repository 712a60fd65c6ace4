// How a control call ends if the device or the client breaks the protocol, on both of its paths.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { Device } from '../../../../src/gateway/device/device.ts'
import { CapfleetError } from '../../../../src/shared/base/error.ts'
import { Secret } from '../../../../src/shared/base/secret.ts'
import { CALLER, PASSING_WAYS, type PassCall } from '../../../support/devices/passing-ways.ts'
import { chunked, endless, pieces, RawDevice } from '../../../support/devices/raw-device.ts'
import { eventually } from '../../../support/eventually.ts'
import { httpGet, httpOpen } from '../../../support/http-get.ts'

/**
 * A limit for silence. It is longer than a busy machine makes this process wait, or every failure would be this one.
 */
const TIMEOUT_MS = 1_000
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'

for (const [name, open] of PASSING_WAYS)
  describe(`a control call by ${name}`, () => {
    let device: RawDevice
    let front: Server
    let pass: PassCall
    /** The error that it was last rejected with. */
    let refused: unknown

    before(async () => {
      device = await RawDevice.start()
      const target = new Device({ name: 'd0', url: device.url, user: 'u', password: new Secret('p') })
      pass = open(target, TIMEOUT_MS)
      front = createServer((req, res) => {
        pass('/x', req, res).catch((error: unknown) => {
          refused = error
          res.writeHead(error instanceof CapfleetError ? error.kind.status : 500).end()
        })
      })
      front.listen(0, '127.0.0.1')
      await once(front, 'listening')
    })
    after(async () => {
      front.closeAllConnections()
      front.close()
      await device[Symbol.asyncDispose]()
    })

    const url = () => `http://127.0.0.1:${(front.address() as AddressInfo).port}/`
    const answers = (text: string, end: 'close' | 'reset' | 'hang') => {
      device.answer = { writes: [Buffer.from(text, 'latin1')], end }
    }

    for (const end of ['close', 'reset', 'hang'] as const) {
      for (const [what, text] of [
        ['chunks', `${CHUNKED}5\r\nhello\r\n`],
        ['a Content-Length', 'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello'],
      ] as const) {
        test(`whose device ends an answer with ${what} early (${end}) has no clean end, and no hang`, async () => {
          answers(text, end)
          await assert.rejects(httpGet(url()))
          await device.until(() => device.connections === 0)
        })
      }
    }

    for (const [what, text, end, status, code] of [
      ['says nothing', '', 'hang', 504, 'device-timeout'],
      ['leaves without an answer', '', 'close', 502, 'device-unreachable'],
      ['speaks something else', 'SSH-2.0-x\r\n\r\n', 'hang', 502, 'device-protocol'],
      [
        'sends both lengths',
        `${CHUNKED.slice(0, -2)}Content-Length: 5\r\n\r\n0\r\n\r\n`,
        'hang',
        502,
        'device-protocol',
      ],
      [
        'sends headers without end',
        `HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(20_000)}`,
        'hang',
        502,
        'device-protocol',
      ],
      [
        'redirects',
        'HTTP/1.1 302 Found\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n',
        'hang',
        502,
        'device-protocol',
      ],
      [
        'redirects with a body that it does not end',
        'HTTP/1.1 302 Found\r\nLocation: http://x/\r\nContent-Length: 5\r\n\r\nhel',
        'hang',
        502,
        'device-protocol',
      ],
      [
        'refuses our credentials',
        'HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n',
        'hang',
        502,
        'device-rejected',
      ],
    ] as const) {
      test(`to a device that ${what} fails with ${code}`, async () => {
        answers(text, end)
        const answer = await httpGet(url())
        assert.equal(answer.status, status)
        assert.ok(refused instanceof CapfleetError && refused.code === code, String(refused))
        await device.until(() => device.connections === 0)
      })
    }

    for (const [what, writes, pauseMs, code] of [
      [
        'switches protocols',
        ['HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'],
        0,
        'device-protocol',
      ],
      ['switches protocols without a word', ['HTTP/1.1 101 Go\r\n\r\n'], 0, 'device-protocol'],
      [
        'sends interim answers for ever',
        endless('HTTP/1.1 102 Wait\r\nA: b\r\n\r\n'.repeat(1_000)),
        0,
        'device-protocol',
      ],
      ['sends an interim answer now and then', endless('HTTP/1.1 102 Wait\r\n\r\n'), 50, 'device-timeout'],
      [
        'sends a byte of a header now and then',
        pieces(Buffer.from(`HTTP/1.1 200 OK\r\nA: ${'b'.repeat(2_000)}`), [19, ...Array(2_000).fill(1)]),
        50,
        'device-timeout',
      ],
    ] as const) {
      test(`to a device that ${what} fails with ${code}, and does not hang`, async () => {
        const all: Iterable<string | Uint8Array> = writes
        device.answer = {
          writes: (function* () {
            for (const piece of all) yield Buffer.from(piece as string, 'latin1')
          })(),
          pauseMs,
          end: 'hang',
        }
        refused = undefined
        await httpGet(url())
        assert.ok(refused instanceof CapfleetError && refused.code === code, String(refused))
        await device.until(() => device.connections === 0)
      })
    }

    for (const [type, shown, disposition] of [
      ['text/html', 'application/octet-stream', 'attachment'],
      ['image/svg+xml', 'application/octet-stream', 'attachment'],
      ['text/html, application/json', 'application/octet-stream', 'attachment'],
      ['Application/JSON; charset=utf-8', 'Application/JSON; charset=utf-8', undefined],
      ['text/csv', 'text/csv', undefined],
      ['text/event-stream', 'text/event-stream', undefined],
    ] as const) {
      test(`whose answer is ${type} gives a browser nothing to run`, async () => {
        answers(`HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\nContent-Length: 2\r\n\r\nok`, 'close')
        const { headers } = await httpGet(url())
        assert.deepEqual(
          [
            headers['content-type'],
            headers['content-disposition'],
            headers['x-content-type-options'],
            headers['content-security-policy'],
          ],
          [shown, disposition, 'nosniff', "sandbox; default-src 'none'"],
        )
      })
    }

    test('breaks the connection to the device when the client leaves, before and after the head', async () => {
      answers('', 'hang')
      device.isHanging = false
      const asked = httpOpen(url())
      asked.catch(() => undefined)
      await device.until(() => device.isHanging)
      front.closeAllConnections()
      await assert.rejects(asked)
      await device.until(() => device.connections === 0)
      // The client is gone, but the call must end for its caller, and the device must not be blamed.
      await eventually(() => refused instanceof CapfleetError && refused.code === 'draining', {
        message: 'the call has failed',
      })
      answers(`${CHUNKED}5\r\nhello\r\n`, 'hang')
      const open = await httpOpen(url())
      await once(open.response, 'readable')
      open[Symbol.dispose]()
      await device.until(() => device.connections === 0)
    })

    for (const bytes of [0, 1, 10_000, 3_000_000]) {
      test(`passes ${bytes} bytes on whole, from one write and from several`, async () => {
        const body = Buffer.alloc(bytes, 'packet')
        const plain = Buffer.concat([
          Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`),
          body,
        ])
        const framed = Buffer.concat([
          Buffer.from(CHUNKED),
          chunked(body, [7, 4_096, 70_000]),
          Buffer.from('0\r\n\r\n'),
        ])
        for (const text of [plain, framed]) {
          for (const writes of [[text], [...pieces(text, [Math.ceil(text.length / 3)])]]) {
            device.answer = { writes, end: 'close' }
            const answer = await httpGet(url())
            assert.equal(answer.status, 200)
            assert.ok(answer.body.equals(body))
            await device.until(() => device.connections === 0)
          }
        }
      })
    }

    test('goes over the connection of the one before it', async () => {
      let connections = 0
      const kind = createServer((req, res) => res.end(req.url)).on('connection', () => {
        connections += 1
      })
      kind.listen(0, '127.0.0.1')
      await once(kind, 'listening')
      const { port } = kind.address() as AddressInfo
      const target = new Device({
        name: 'd1',
        url: `http://127.0.0.1:${port}`,
        user: 'u',
        password: new Secret('p'),
      })
      const passKind = open(target, TIMEOUT_MS)
      const passing = createServer((req, res) => void passKind(req.url ?? '', req, res))
      passing.listen(0, '127.0.0.1')
      await once(passing, 'listening')
      try {
        for (const path of ['/a', '/b?c=/d//e', '/f']) {
          const answer = await httpGet(`http://127.0.0.1:${(passing.address() as AddressInfo).port}${path}`)
          assert.equal(answer.body.toString(), path)
        }
        assert.equal(connections, 1)
      } finally {
        for (const server of [passing, kind]) {
          server.closeAllConnections()
          server.close()
        }
      }
    })

    test('takes along what the other side needs to know, and no credentials', async () => {
      answers(
        'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nETag: "a"\r\nCache-Control: public, max-age=60\r\nSet-Cookie: a=b\r\nX-Device: 1\r\n\r\nok',
        'close',
      )
      const { headers } = await httpGet(url(), {
        headers: {
          accept: 'text/csv',
          authorization: 'Basic eDp5',
          cookie: 'a=b',
          range: 'bytes=0-1',
          'capfleet-caller': 'somebody else',
          'x-a': '1',
        },
      })
      assert.deepEqual(Object.keys(headers).sort(), [
        'connection',
        'content-disposition',
        'content-length',
        'content-security-policy',
        'content-type',
        'date',
        'etag',
        'x-content-type-options',
      ])
      const [requestLine, ...lines] = (device.requests.at(-1) ?? '').trimEnd().split('\r\n')
      assert.equal(requestLine, 'GET /x HTTP/1.1')
      assert.deepEqual(
        lines
          .filter((line) => !/^connection:/i.test(line))
          .map((line) => line.replace(/^.*?:/, (name) => name.toLowerCase()))
          .sort(),
        [
          'accept: text/csv',
          `authorization: Basic ${btoa('u:p')}`,
          `capfleet-caller: ${CALLER}`,
          `host: ${new URL(device.url).host}`,
          'range: bytes=0-1',
        ],
      )
    })

    test('by HEAD passes the head on and uses the connection again', async () => {
      answers('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nContent-Type: text/plain\r\n\r\n', 'hang')
      const answer = await httpGet(url(), { method: 'HEAD' })
      assert.deepEqual(
        [answer.status, answer.headers['content-length'], answer.headers['content-type'], answer.body.length],
        [200, '1000', 'text/plain', 0],
      )
      assert.match(device.requests.at(-1) ?? '', /^HEAD \/x HTTP\/1\.1\r\n/)
    })
  })
