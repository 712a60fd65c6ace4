import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { NOBODY } from '../../../../../src/gateway/audit/audit-events.ts'
import type { ByteRange } from '../../../../../src/gateway/export/target/export-target.ts'
import { answerFile } from '../../../../../src/gateway/routes/exports/answer-file.ts'
import { FileAudit } from '../../../../../src/gateway/routes/exports/file-audit.ts'
import type { RouteContext } from '../../../../../src/gateway/routes/request/route-context.ts'
import { CapfleetError } from '../../../../../src/shared/base/error.ts'
import { createLog, type Log } from '../../../../../src/shared/base/log.ts'
import { Metrics } from '../../../../../src/shared/base/metrics.ts'
import { createHttpApp } from '../../../../../src/shared/http/http-app.ts'
import { listen } from '../../../../../src/shared/http/http-server.ts'
import { UNAUDITED } from '../../../../support/access/temp-audit.ts'
import { callerNamed } from '../../../../support/access/test-caller.ts'
import { eventually } from '../../../../support/eventually.ts'
import { httpGet, httpOpen } from '../../../../support/http-get.ts'
import { shellPipeline } from '../../../../support/processes/shell-pipeline.ts'
import { tempFolder } from '../../../../support/temp-folder.ts'

const SILENT = createLog('test', 'silent')
const CONTENT = randomBytes(300_000)

interface Stage {
  readonly url: string
  /** The streams that were opened. */
  readonly opened: Readable[]
  /** Events of the log, with their errors. */
  readonly logged: { readonly event: string; readonly err: unknown }[]
  readonly revoke: AbortController
  /** Ends the answers of a gateway that shuts down. */
  readonly cut: AbortController
}

interface StageOptions {
  readonly content?: Buffer
  /** The announced length of the file; default: that of the content. */
  readonly bytes?: number
  readonly name?: string
  readonly clientIdleTimeoutMs?: number
  /** The content that is read; default: the content. */
  readonly read?: (range: ByteRange | undefined) => Readable
}

function part(content: Buffer, range: ByteRange | undefined): Buffer {
  return range === undefined ? content : content.subarray(range.first, range.last + 1)
}

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** Serves a file at every path. */
async function serve(t: TestContext, options: StageOptions = {}): Promise<Stage> {
  const { content = CONTENT, name = 'x.pcap', clientIdleTimeoutMs = 60_000 } = options
  const { bytes = content.length } = options
  const read = options.read ?? ((range) => piecesOf(part(content, range)))
  const stage: Omit<Stage, 'url'> = {
    opened: [],
    logged: [],
    revoke: new AbortController(),
    cut: new AbortController(),
  }
  const metrics = { fileSent: () => undefined }
  const log: Log = { ...SILENT, warn: (event, fields = {}) => stage.logged.push({ event, err: fields.err }) }
  const app = createHttpApp({ log: SILENT, metrics: new Metrics() })
  const audit = new FileAudit(UNAUDITED, NOBODY, { export: 'e', file: name, devices: [] })
  app.use(async (ctx) => {
    ctx.state.caller = callerNamed('ann', { revoked: stage.revoke.signal })
    const file = {
      name,
      bytes,
      sha256: sha256(content),
      open: async (range: ByteRange | undefined) => {
        const stream = read(range)
        stage.opened.push(stream)
        return stream
      },
    }
    await answerFile(ctx as unknown as RouteContext, file, {
      clientIdleTimeoutMs,
      cut: stage.cut.signal,
      log,
      metrics,
      audit,
    })
  })
  const server = await listen(app.callback(), { host: '127.0.0.1', port: 0 }, new Metrics())
  t.after(() => server.close(0))
  return { ...stage, url: server.url }
}

/** A body that continues as long as the client reads. */
function endless(): Readable {
  return new Readable({
    read() {
      this.push(Buffer.alloc(65_536))
    },
  })
}

/** So long that no client reads all of it. */
const ENDLESS = { bytes: 2 ** 40, read: endless }

test('the whole file comes with its length, type, name and hash', async (t) => {
  const { url } = await serve(t)
  const { status, headers, body } = await httpGet(url)
  assert.equal(status, 200)
  assert.ok(body.equals(CONTENT))
  const { etag, 'content-length': length, 'content-type': type, 'accept-ranges': ranges } = headers
  assert.deepEqual(
    [etag, length, type, ranges],
    [`"${sha256(CONTENT)}"`, '300000', 'application/vnd.tcpdump.pcap', 'bytes'],
  )
  assert.equal(headers['content-disposition'], 'attachment; filename="x.pcap"')
  assert.equal(headers['cache-control'], 'private, no-cache')
})

test('HEAD has the same head, and reads nothing', async (t) => {
  const { url, opened } = await serve(t)
  const strip = ({
    date: _date,
    'capfleet-request-id': _id,
    'server-timing': _timing,
    ...headers
  }: NodeJS.Dict<string | string[]>) => headers
  const whole = await httpGet(url)
  const head = await httpGet(url, { method: 'HEAD', headers: { Range: 'bytes=5-' } })
  assert.deepEqual([head.status, strip(head.headers), head.body.length], [200, strip(whole.headers), 0])
  assert.equal(opened.length, 1)
})

for (const [name, type] of [
  ['a.pcap', 'application/vnd.tcpdump.pcap'],
  ['a.pcap.gz', 'application/gzip'],
  ['a.pcap.zst', 'application/zstd'],
  ['manifest.json', 'application/json'],
  ['notes', 'application/octet-stream'],
] as const) {
  test(`${name} is ${type}`, async (t) => {
    const { url } = await serve(t, { name })
    assert.equal((await httpGet(url, { method: 'HEAD' })).headers['content-type'], type)
  })
}

test('an empty file comes, and is no error', async (t) => {
  const { url } = await serve(t, { content: Buffer.alloc(0) })
  const { status, headers, body } = await httpGet(url)
  assert.deepEqual([status, headers['content-length'], body.length], [200, '0', 0])
  assert.equal((await httpGet(url, { headers: { Range: 'bytes=0-' } })).status, 416)
})

test('any range is what it is of the bytes', async (t) => {
  const { url } = await serve(t)
  const size = CONTENT.length
  const place = fc.nat(size + 10)
  const ranges = fc.oneof(
    fc.tuple(place, place).map(([a, b]) => ({
      text: `${Math.min(a, b)}-${Math.max(a, b)}`,
      from: Math.min(a, b),
      to: Math.max(a, b) + 1,
    })),
    place.map((from) => ({ text: `${from}-`, from, to: size })),
    place.map((count) => ({
      text: `-${count}`,
      from: count === 0 ? size : Math.max(0, size - count),
      to: size,
    })),
  )
  await fc.assert(
    fc.asyncProperty(ranges, async ({ text, from, to }) => {
      const { status, headers, body } = await httpGet(url, { headers: { Range: `bytes=${text}` } })
      if (from >= size) {
        assert.deepEqual([status, headers['content-range']], [416, `bytes */${size}`])
        return
      }
      const expected = CONTENT.subarray(from, to)
      assert.equal(status, 206)
      assert.ok(body.equals(expected))
      assert.equal(headers['content-range'], `bytes ${from}-${from + expected.length - 1}/${size}`)
      assert.equal(headers['content-length'], String(expected.length))
    }),
    { numRuns: 100 },
  )
})

test('a range that is not there is a problem, without the facts of a file', async (t) => {
  const { url, opened } = await serve(t)
  const answer = await httpGet(url, { headers: { Range: 'bytes=300000-' } })
  assert.equal(answer.json().code, 'range-not-satisfiable')
  assert.equal(answer.headers.etag, undefined)
  assert.match(String(answer.headers['content-type']), /^application\/problem\+json/)
  assert.equal(opened.length, 0)
})

test('a client that has the file gets its ETag and no body', async (t) => {
  const { url, opened } = await serve(t)
  const etag = `"${sha256(CONTENT)}"`
  const { status, headers, body } = await httpGet(url, { headers: { 'If-None-Match': etag } })
  assert.deepEqual([status, headers.etag, body.length, opened.length], [304, etag, 0, 0])
})

test('a part of another file is answered with the whole one', async (t) => {
  const { url } = await serve(t)
  const other = await httpGet(url, { headers: { Range: 'bytes=5-', 'If-Range': '"other"' } })
  assert.deepEqual([other.status, other.body.length], [200, CONTENT.length])
  const same = await httpGet(url, { headers: { Range: 'bytes=5-', 'If-Range': `"${sha256(CONTENT)}"` } })
  assert.deepEqual([same.status, same.body.length], [206, CONTENT.length - 5])
})

test('curl resumes where it broke off, and accepts a file that is complete', async (t) => {
  const { url } = await serve(t)
  await using folder = await tempFolder()
  const path = join(folder.path, 'x.pcap')
  await writeFile(path, CONTENT.subarray(0, 123_456))
  for (const _round of ['the rest', 'nothing']) {
    const { codes } = await shellPipeline(`curl -sS -C - -o '${path}' '${url}/x'`)
    assert.deepEqual(codes, [0])
    assert.ok((await readFile(path)).equals(CONTENT))
  }
})

test('what cannot be opened is a problem', async (t) => {
  const { url } = await serve(t, {
    read: () => {
      throw new CapfleetError('export-target-unavailable', 'the disk is away')
    },
  })
  const answer = await httpGet(url)
  assert.deepEqual([answer.status, answer.json().code], [503, 'export-target-unavailable'])
  assert.equal(answer.headers['content-length'], String(answer.body.length))
})

for (const [what, read] of [
  ['that fails midway', failing],
  ['of which the end is missing', () => piecesOf(CONTENT.subarray(0, 250_000))],
  ['that is longer than it should be', () => piecesOf(Buffer.concat([CONTENT, Buffer.from('x')]))],
] as const) {
  test(`a file ${what} is cut, and curl notices, over HTTP/1.0 too`, async (t) => {
    const { url, logged, opened } = await serve(t, { read })
    for (const option of ['--http1.1', '--http1.0']) {
      const { codes } = await shellPipeline(`curl -sS ${option} -o /dev/null '${url}/x'`)
      assert.notDeepEqual(codes, [0], option)
    }
    assert.deepEqual(
      logged.map(({ event }) => event),
      ['file.cut', 'file.cut'],
    )
    assert.ok(opened.length === 2 && opened.every((stream) => stream.destroyed))
  })
}

test('curl resumes after a cut', async (t) => {
  let isFirst = true
  const { url } = await serve(t, {
    read: (range) => {
      if (!isFirst) return piecesOf(part(CONTENT, range))
      isFirst = false
      return failing()
    },
  })
  await using folder = await tempFolder()
  const path = join(folder.path, 'x.pcap')
  const { codes } = await shellPipeline(
    `curl -sS -f -o '${path}' '${url}/x' || curl -sS -f -C - -o '${path}' '${url}/x'`,
  )
  assert.deepEqual(codes, [0])
  assert.ok(!isFirst && (await readFile(path)).equals(CONTENT))
})

test('a client that leaves ends the read', async (t) => {
  const { url, opened, logged } = await serve(t, ENDLESS)
  const answer = await httpOpen(url)
  await once(answer.response, 'readable')
  const closed = endOf(opened)
  answer[Symbol.dispose]()
  await closed
  assert.deepEqual(logged, [])
})

test('a client that does not read is cut off', async (t) => {
  const { url, opened, logged } = await serve(t, { ...ENDLESS, clientIdleTimeoutMs: 50 })
  using _unread = await httpOpen(url)
  await endOf(opened)
  await eventually(() => logged.length > 0, { message: 'the cut is logged' })
  assert.match(String(logged[0]?.err), /read less than 1 MiB/)
})

for (const [what, by, reason] of [
  [
    'of a user who may not have it any more',
    'revoke',
    new CapfleetError('insufficient-scope', 'the user is gone'),
  ],
  [
    'that has not ended in the time of a gateway that stops',
    'cut',
    new CapfleetError('draining', 'it was shut down'),
  ],
] as const) {
  test(`a file ${what} is cut off`, async (t) => {
    const served = await serve(t, ENDLESS)
    using answer = await httpOpen(served.url)
    await once(answer.response, 'readable')
    served[by].abort(reason)
    await assert.rejects(buffer(answer.response), { code: 'ECONNRESET' })
    await endOf(served.opened)
    assert.deepEqual(served.logged, [{ event: 'file.cut', err: reason }])
  })
}

function piecesOf(content: Buffer): Readable {
  return Readable.from([content], { objectMode: false })
}

function failing(): Readable {
  const pieces = async function* () {
    yield CONTENT.subarray(0, 200_000)
    throw new Error('EIO: i/o error, read')
  }
  return Readable.from(pieces(), { objectMode: false })
}

/** Resolves when the one opened stream is closed. */
async function endOf([stream]: readonly Readable[]): Promise<void> {
  assert.ok(stream !== undefined)
  if (!stream.closed) await new Promise((resolve) => stream.once('close', resolve))
}
