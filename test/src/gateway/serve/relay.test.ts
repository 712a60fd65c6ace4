// A relay with raw sockets on both sides: bytes, ends and cuts, at any speed of either side.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { after, afterEach, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { READ_BUFFERS } from '../../../../src/gateway/device/read-size.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { listen } from '../../../../src/shared/http/http-server.ts'
import { RecordBoundary } from '../../../../src/shared/pcap/record-boundary.ts'
import { createTempCertificate } from '../../../support/access/temp-certificate.ts'
import { chunked, pieces, type RawAnswer, RawDevice } from '../../../support/devices/raw-device.ts'
import { eventually } from '../../../support/eventually.ts'
import { httpGet, httpOpen } from '../../../support/http-get.ts'
import { makePacket, makePcap, makeRecord } from '../../../support/packets/packet-maker.ts'
import { startTempNginx, WITHOUT_NGINX } from '../../../support/processes/temp-proxy.ts'
import { seededRandom } from '../../../support/seeded-random.ts'
import {
  type RelayFront,
  type RelayFrontOptions,
  startRelayFront,
} from '../../../support/servers/relay-front.ts'

const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const ANNOUNCED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Capfleet-Complete\r\n\r\n'
const COMPLETE = '0\r\nCapfleet-Complete: 1\r\nCapfleet-Packets: 3\r\nX-Other: 1\r\n\r\n'
const EMPTY_PCAP = makePcap([])
const PCAP_RECORD = makeRecord(makePacket(50n, 'one more'))
const IMPOSSIBLE_RECORD = Buffer.alloc(400, 0xff)
const PCAP = makePcap(
  Array.from({ length: 40 }, (_, number) => makePacket(BigInt(number), `packet ${number}`, 30 + number * 11)),
)

function bytes(...parts: readonly (string | Uint8Array)[]): Buffer {
  return Buffer.concat(parts.map((part) => Buffer.from(part as string)))
}

function lengthOf(parts: readonly Buffer[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0)
}

const CUTS_AT_ONCE = 64

/** The exit codes of curl and tcpdump in `curl | tcpdump`, and the packets that arrived. */
function pipeline(url: string, option: string): Promise<{ curl: number; tcpdump: number }> {
  const script = `curl -fsS ${option} '${url}' 2>/dev/null | tcpdump -nr - >/dev/null 2>&1; echo "\${PIPESTATUS[0]} \${PIPESTATUS[1]}"`
  return new Promise((resolve, reject) => {
    execFile('bash', ['--norc', '-c', script], (error, stdout) => {
      if (error) return reject(error)
      const [curl = Number.NaN, tcpdump = Number.NaN] = stdout.trim().split(' ').map(Number)
      resolve({ curl, tcpdump })
    })
  })
}

describe('a relay', () => {
  let device: RawDevice
  let front: RelayFront

  before(async () => {
    device = await RawDevice.start()
    front = await startRelayFront(device.url)
  })
  after(async () => {
    await front[Symbol.asyncDispose]()
    await device[Symbol.asyncDispose]()
  })
  afterEach(async (t) => {
    // A failed test may have left one that hangs.
    if ((t as { readonly passed?: boolean }).passed === false) device.cut()
    await device.until(() => device.connections === 0)
    await eventually(() => READ_BUFFERS.takenBytes === 0, { message: 'all buffers are back' })
  })

  const answers = (writes: Iterable<Uint8Array>, end?: RawAnswer['end']) => {
    device.answer = { writes, ...(end === undefined ? {} : { end }) }
  }
  async function startOther(options: RelayFrontOptions): Promise<RelayFront> {
    return startRelayFront(device.url, options)
  }

  describe('of a whole body', () => {
    for (const [name, head, frame] of [
      [
        'with its completion trailer',
        ANNOUNCED,
        (body: Buffer) => bytes(chunked(body, [1, 7, 1_000]), COMPLETE),
      ],
      ['in chunks without trailers', CHUNKED, (body: Buffer) => bytes(chunked(body, [300]), '0\r\n\r\n')],
      ['with a Content-Length', undefined, (body: Buffer) => body],
      ['that ends with the connection', 'HTTP/1.0 200 OK\r\n\r\n', (body: Buffer) => body],
    ] as const) {
      test(`${name}: every byte arrives, however the device splits it`, async () => {
        for (const [body, lengths] of [
          [PCAP, [1]],
          [PCAP, [2, 3, 500]],
          [PCAP, [100_000]],
          [EMPTY_PCAP, [9]],
        ] as const) {
          const lines = head ?? `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`
          answers(pieces(bytes(lines, frame(body)), lengths))
          const answer = await httpGet(front.url)
          assert.equal(answer.status, 200, answer.body.toString())
          assert.ok(answer.body.equals(body))
        }
      })
    }

    test('of many megabytes arrives as it is, with odd sizes of everything', async (t) => {
      const random = seededRandom()
      t.diagnostic(`SEED=${random.seed}`)
      const packets = Array.from({ length: 20_000 }, (_, number) =>
        makePacket(BigInt(number), `packet ${number}`, random.integer(20, 2_000)),
      )
      const body = makePcap(packets)
      const sizes = Array.from({ length: 50 }, () => random.integer(1, random.pick([10, 3_000, 400_000])))
      const lengths = Array.from({ length: 50 }, () =>
        random.integer(1, random.pick([2_000, 70_000, 2_000_000])),
      )
      answers(pieces(bytes(ANNOUNCED, chunked(body, sizes), COMPLETE), lengths))
      const answer = await httpGet(front.url)
      assert.ok(answer.body.equals(body))
    })

    test('passes on the trailers that hold for the client, to one that asked', async () => {
      const other = await startOther({ digest: true })
      try {
        answers([bytes(ANNOUNCED, chunked(PCAP, [999]), COMPLETE)])
        const { trailers } = await httpGet(other.url, { headers: { TE: 'trailers' } })
        const sha256 = createHash('sha256').update(PCAP).digest('hex')
        const {
          'capfleet-complete': complete,
          'capfleet-packets': packets,
          'capfleet-bytes': count,
        } = trailers
        assert.deepEqual([complete, packets, count], ['1', '3', String(PCAP.length)])
        assert.equal(trailers['x-other'], undefined)
        await other.ended(1)
        const [end] = other.ends
        assert.ok(end !== undefined && 'bytes' in end)
        assert.deepEqual([end.bytes, end.sha256], [PCAP.length, sha256])
      } finally {
        await other[Symbol.asyncDispose]()
      }
    })

    test('to an HTTP/1.0 client has no chunks', async () => {
      answers([bytes(ANNOUNCED, chunked(PCAP, [10]), COMPLETE)])
      const socket = connect(Number(new URL(front.url).port), '127.0.0.1')
      socket.write('GET / HTTP/1.0\r\n\r\n')
      const received = bytes(...((await socket.toArray()) as Buffer[]))
      const end = received.indexOf('\r\n\r\n')
      assert.doesNotMatch(received.toString('latin1', 0, end), /transfer-encoding|content-length/i)
      assert.ok(received.subarray(end + 4).equals(PCAP))
    })

    test("asks under the gateway's own credentials and for a connection of its own", async () => {
      device.requests.length = 0
      answers([bytes(ANNOUNCED, chunked(PCAP, [10]), COMPLETE)])
      await httpGet(`${front.url}/x?a=b`, { headers: { cookie: 'c', authorization: 'Basic zzz' } })
      assert.deepEqual(device.requests[0]?.split('\r\n'), [
        'GET /x?a=b HTTP/1.1',
        `host: ${new URL(device.url).host}`,
        `authorization: Basic ${btoa('u:p')}`,
        'capfleet-caller: relay',
        'te: trailers',
        'user-agent: capfleet-gateway',
        'connection: close, te',
        '',
        '',
      ])
    })
  })

  describe('of a body that is cut', () => {
    const wire = bytes(ANNOUNCED, chunked(PCAP, [700]), COMPLETE)
    const firstCut = ANNOUNCED.length + 40

    test('at any byte is never a clean end for a client', async () => {
      const all = Array.from({ length: wire.length - firstCut }, (_, index) => firstCut + index)
      // Every position of the last data, the last chunk and the trailer, and some of the rest.
      const isLast = (at: number) => at > wire.length - COMPLETE.length - 20
      for (const [end, every] of [
        ['close', 17],
        ['reset', 71],
      ] as const) {
        const cuts = all.filter((at) => isLast(at) || at % every === 0)
        // A client gets some time to read before it sees the reset, so many downloads are cut at a time.
        for (let first = 0; first < cuts.length; first += CUTS_AT_ONCE) {
          const batch = cuts.slice(first, first + CUTS_AT_ONCE)
          device.next.push(...batch.map((cut) => ({ writes: [wire.subarray(0, cut)], end })))
          const reads = batch.map(() =>
            assert.rejects(httpGet(front.url), `one of the cuts at ${batch} by ${end}`),
          )
          await Promise.all(reads)
        }
      }
    })

    test('would be caught if it ended politely', async () => {
      // The negative control: the same short body, ended properly by a device that is trusted.
      answers([bytes(ANNOUNCED, chunked(PCAP.subarray(0, -5), [99]), COMPLETE)])
      const polite = createServer((_req, res) => res.end(PCAP.subarray(0, -5))).listen(0, '127.0.0.1')
      await once(polite, 'listening')
      using stack = new DisposableStack()
      stack.defer(() => void polite.close())
      const { body } = await httpGet(`http://127.0.0.1:${(polite.address() as AddressInfo).port}`)
      assert.equal(body.length, PCAP.length - 5)
      await assert.rejects(httpGet(front.url), 'a relay looks at the records even so')
    })

    test('inside and between records: curl and tcpdump see it, directly and over HTTP/1.0', async () => {
      const boundaries = [makePcap([]).length, makePcap([makePacket(0n, 'packet 0', 30)]).length]
      for (const [body, more] of [
        [PCAP.subarray(0, boundaries[0]), ''],
        [PCAP.subarray(0, boundaries[1]), ''],
        [PCAP.subarray(0, boundaries[1]), '100\r\n'],
        [PCAP.subarray(0, 1_000), ''],
        [PCAP.subarray(0, 1_000), '5\r\nab'],
      ] as const) {
        answers([bytes(ANNOUNCED, chunked(body, [50]), more)])
        const answers11 = await pipeline(front.url, '--http1.1')
        assert.deepEqual(answers11, { curl: 56, tcpdump: 1 })
        const { curl, tcpdump } = await pipeline(front.url, '--http1.0')
        assert.deepEqual([curl, tcpdump], [56, 1])
      }
    })

    test('behind nginx: curl and tcpdump see it', { skip: WITHOUT_NGINX }, async () => {
      answers([bytes(ANNOUNCED, chunked(PCAP, [50]), COMPLETE)])
      const nginx = await startTempNginx(front.url)
      try {
        answers([bytes(ANNOUNCED, chunked(PCAP, [50]))])
        const { curl, tcpdump } = await pipeline(`${nginx.url}/x`, '--http1.1')
        assert.notEqual(curl, 0)
        assert.equal(tcpdump, 1)
      } finally {
        await nginx[Symbol.asyncDispose]()
      }
    })

    for (const [what, answer, asked = ''] of [
      ['without the completion trailer it announced', bytes(ANNOUNCED, chunked(PCAP, [99]), '0\r\n\r\n')],
      ['with a completion of 0', bytes(ANNOUNCED, chunked(PCAP, [99]), '0\r\nCapfleet-Complete: 0\r\n\r\n')],
      ['inside a record', bytes(CHUNKED, chunked(PCAP.subarray(0, -5), [99]), '0\r\n\r\n')],
      ['inside a record header', bytes(CHUNKED, chunked(bytes(PCAP, 'abc'), [99]), '0\r\n\r\n')],
      ['inside a record after its Content-Length', bytes(withLength(PCAP.length - 1), PCAP.subarray(0, -1))],
      ['before its Content-Length', bytes(withLength(PCAP.length + 1), PCAP)],
      ['after its Content-Length', bytes(withLength(PCAP.length), PCAP, 'x')],
      ['with a second answer', bytes(CHUNKED, chunked(PCAP, [99]), '0\r\n\r\n', CHUNKED)],
      [
        'with a chunk longer than its size',
        bytes(CHUNKED, chunked(PCAP, [99]).subarray(0, -2), 'abc\r\n0\r\n\r\n'),
      ],
      [
        'with an impossible record',
        bytes(CHUNKED, chunked(bytes(PCAP, Buffer.alloc(400, 0xff)), [99]), '0\r\n\r\n'),
      ],
      ['inside a record by closing', bytes('HTTP/1.1 200 OK\r\n\r\n', PCAP.subarray(0, -1))],
      [
        'inside a gzip member',
        bytes(CHUNKED, chunked(gzipSync(PCAP).subarray(0, -1), [99]), '0\r\n\r\n'),
        '/?Compression=fast',
      ],
      [
        'inside a zstd frame',
        bytes(CHUNKED, chunked(zstdCompressSync(PCAP).subarray(0, -1), [99]), '0\r\n\r\n'),
        '/?Compression=zstd',
      ],
      [
        'between gzip members inside a record',
        bytes(CHUNKED, chunked(gzipSync(PCAP.subarray(0, -9)), [99]), '0\r\n\r\n'),
        '/?Compression=fast',
      ],
    ] as const) {
      test(`in good form, but ${what}: no clean end`, async () => {
        answers([answer])
        await assert.rejects(httpGet(`${front.url}${asked}`))
        assert.ok(front.ends.at(-1) instanceof Error)
      })
    }

    test('by bytes that arrive after its end in a separate packet', async () => {
      const more = Promise.withResolvers<string>()
      device.answer = { writes: [bytes(withLength(PCAP.length), PCAP)], end: 'hang', added: more.promise }
      const answer = httpGet(front.url)
      await device.until(() => device.isHanging)
      more.resolve('x')
      await assert.rejects(answer)
    })

    // Data that a guard rejects is not passed on: the cut is where the previous read ended.
    for (const [where, passed, refused] of [
      ['behind a record, in one chunk', PCAP, [IMPOSSIBLE_RECORD]],
      [
        'behind a record, inside chunks',
        PCAP,
        [IMPOSSIBLE_RECORD.subarray(0, 10), IMPOSSIBLE_RECORD.subarray(10)],
      ],
      ['behind a record, one further', PCAP, [PCAP_RECORD, IMPOSSIBLE_RECORD]],
      ['inside a record', PCAP.subarray(0, -8), [PCAP.subarray(-8), IMPOSSIBLE_RECORD]],
    ] as const) {
      test(`before an impossible record, when the last read ended ${where}: the file ends inside a record`, async () => {
        const more = Promise.withResolvers<Buffer>()
        const begun = bytes(CHUNKED, chunked(passed, [99]))
        device.answer = { writes: [begun], end: 'hang', added: more.promise }
        using answer = await httpOpen(front.url)
        const received: Buffer[] = []
        await assert.rejects(async () => {
          for await (const piece of answer.response) {
            received.push(piece as Buffer)
            if (lengthOf(received) === passed.length)
              more.resolve(bytes(...refused.map((piece) => chunked(piece, [99])), '0\r\n\r\n'))
          }
        })
        const boundary = new RecordBoundary('the file')
        boundary.feed(received)
        assert.deepEqual(Buffer.concat(received).subarray(0, passed.length), passed)
        assert.equal(boundary.atBoundary, false)
      })
    }
  })

  test('over TLS to the device: every byte arrives, and only with a valid certificate', async () => {
    await using certificate = await createTempCertificate()
    const tls = await listen(
      (_req, res) => {
        res.writeHead(200, { Trailer: 'Capfleet-Complete' })
        res.write(PCAP)
        res.addTrailers({ 'Capfleet-Complete': '1' })
        res.end()
      },
      { host: '127.0.0.1', port: 0, tls: certificate },
      new Metrics(),
    )
    const trusting = await startRelayFront(tls.url, { ca: certificate.ca })
    const wary = await startRelayFront(tls.url)
    try {
      assert.ok((await httpGet(trusting.url)).body.equals(PCAP))
      assert.equal((await httpGet(wary.url)).status, 502)
      assert.match(String(wary.ends[0]), /self-signed certificate/)
    } finally {
      await trusting[Symbol.asyncDispose]()
      await wary[Symbol.asyncDispose]()
      await tls.close(0)
    }
  })

  test('over TLS on both sides: every byte arrives, and a device that dies is an error to curl', async () => {
    await using certificate = await createTempCertificate()
    const body = Buffer.concat([PCAP, ...Array<Buffer>(400).fill(PCAP.subarray(24))])
    const tls = await listen(
      (req, res) => {
        res.writeHead(200, { Trailer: 'Capfleet-Complete' })
        res.write(body, () => req.url === '/dies' && res.destroy())
        if (req.url === '/dies') return
        res.addTrailers({ 'Capfleet-Complete': '1' })
        res.end()
      },
      { host: '127.0.0.1', port: 0, tls: certificate },
      new Metrics(),
    )
    const both = await startRelayFront(tls.url, { ca: certificate.ca, certificate })
    try {
      const options = { encoding: 'buffer', maxBuffer: 2 * body.length } as const
      const curl = ['-fsS', '--cacert', certificate.cert, `${both.url}/whole`]
      const { stdout } = await promisify(execFile)('curl', curl, options)
      assert.ok(stdout.equals(body))
      const cut = await pipeline(`${both.url}/dies`, `--cacert ${certificate.cert}`)
      assert.deepEqual(cut, { curl: 56, tcpdump: 1 })
      assert.ok(both.ends.at(-1) instanceof Error)
    } finally {
      await both[Symbol.asyncDispose]()
      await tls.close(0)
    }
  })

  describe('between unequal sides', () => {
    test('breaks the connection to the device when the client leaves', async () => {
      answers(pieces(bytes(ANNOUNCED, chunked(PCAP, [500])), [1_000]), 'hang')
      using open = await httpOpen(front.url)
      await once(open.response, 'readable')
      assert.equal(device.connections, 1)
      open[Symbol.dispose]()
      await device.until(() => device.connections === 0)
    })

    test('cuts a stream whose device says nothing more', async () => {
      const other = await startOther({ idleTimeoutMs: 200 })
      try {
        answers([bytes(ANNOUNCED, chunked(PCAP, [500]))], 'hang')
        await assert.rejects(httpGet(other.url))
        assert.match(String(other.ends[0]), /did not send anything within 0.2 s/)
      } finally {
        await other[Symbol.asyncDispose]()
      }
    })

    test('holds a few buffers for a client that reads nothing, and cuts it in the end', async () => {
      const other = await startOther({ clientIdleTimeoutMs: 300 })
      try {
        answers(endlessPcap(), 'hang')
        using open = await httpOpen(other.url)
        await eventually(() => open.response.readableLength > 0, { message: 'bytes' })
        await other.ended(1)
        assert.match(String(other.ends[0]), /the client read nothing/)
        assert.ok(READ_BUFFERS.takenBytes <= 3 * 1_048_576, `${READ_BUFFERS.takenBytes} bytes held`)
      } finally {
        await other[Symbol.asyncDispose]()
      }
    })
  })
})

function withLength(length: number): string {
  return `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n`
}

function* endlessPcap(): Generator<Uint8Array> {
  const record = makePcap([makePacket(1n, 'x', 50_000)]).subarray(24)
  yield bytes(ANNOUNCED, chunked(EMPTY_PCAP, [24]))
  const chunk = chunked(record, [record.length])
  for (;;) yield chunk
}
