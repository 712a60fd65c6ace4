// POST /v1/captures over HTTP: a capture file as the body of a request becomes a capture.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { connectTo, rawAnswers } from '../../support/clients/raw-client.ts'
import { eventually } from '../../support/eventually.ts'
import { type HttpAnswer, httpGet } from '../../support/http-get.ts'
import { writeBigCapture } from '../../support/packets/big-capture.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'

const PATH = '/v1/captures'
const BYTES_MAX = 4 * 2 ** 20

let appliance: TempAppliance
let file: string
let bytes: Buffer

before(async () => {
  appliance = await startTempAppliance({ config: { uploads: { bytesMax: BYTES_MAX } } })
  file = join(appliance.folder, 'a.pcap')
  await writeBigCapture(file, 2_000)
  bytes = await readFile(file)
})
after(() => appliance[Symbol.asyncDispose]())

const upload = (query: string, body: Uint8Array, role: 'full' | 'user' = 'full'): Promise<HttpAnswer> =>
  httpGet(`${appliance.url}${PATH}?${query}`, { method: 'POST', body, user: appliance.credentials(role) })
const stored = (from: TempAppliance = appliance): Promise<string[]> =>
  readdir(join(from.storePath, 'captures'))
const outcomes = async (): Promise<Record<string, number>> => {
  const { body } = await appliance.get('/metrics')
  const series = body.toString().matchAll(/^capfleet_uploads_total\{outcome="([a-z-]+)"\} (\d+)$/gm)
  return Object.fromEntries([...series].map(([, outcome, count]) => [outcome, Number(count)]))
}

/** What tcpdump reads from a file: the time, the bytes and the length of each packet. */
function dumped(path: string): string {
  const { stdout, status, stderr } = spawnSync('tcpdump', ['-nn', '-tt', '-xx', '-r', path], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  assert.equal(status, 0, stderr)
  return stdout
}

test('an uploaded file comes back byte for byte, whatever packed it', async () => {
  const expected = dumped(file)
  assert.ok(expected.length > 100_000)
  const packed: Readonly<Record<string, readonly string[]>> = {
    pcap: ['cat', file],
    gz: ['gzip', '-c', file],
    xz: ['xz', '-c', file],
    lz4: ['lz4', '-c', file],
    zst: ['zstd', '-c', file],
    bz2: ['bzip2', '-c', file],
    pcapng: ['editcap', '-F', 'pcapng', file, '-'],
  }
  for (const [kind, [command = '', ...flags]] of Object.entries(packed)) {
    const { stdout, status, stderr } = spawnSync(command, flags, { maxBuffer: 2 ** 28 })
    assert.equal(status, 0, `${kind}: ${stderr}`)
    const answer = await upload(`StreamName=${kind}&FileName=a.${kind}`, stdout)
    assert.equal(answer.status, 201, answer.body.toString())
    const { StreamName, Packets, Damages } = answer.json()
    assert.deepEqual([StreamName, Packets, Damages], [kind, '2000', []])
    const back = join(appliance.folder, `${kind}.back`)
    await writeFile(back, (await appliance.get(`/api/v1/pcap/single?StreamName=${kind}`)).body)
    assert.equal(dumped(back), expected, kind)
  }
})

/** A connection that has sent the head of an upload, and what it has received so far. */
async function opened(
  query: string,
  headers: readonly string[],
  at = appliance,
): Promise<{ readonly socket: Socket; readonly received: () => string }> {
  const socket = await connectTo(at.url)
  let received = ''
  socket.on('data', (piece: Buffer) => {
    received += piece.toString('latin1')
  })
  const login = `Authorization: Basic ${btoa(at.credentials('full'))}`
  socket.write(`POST ${PATH}?${query} HTTP/1.1\r\nHost: a\r\n${[login, ...headers].join('\r\n')}\r\n\r\n`)
  return { socket, received: () => received }
}

const chunk = (piece: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
const untilText = (received: () => string, pattern: RegExp): Promise<unknown> =>
  eventually(() => pattern.test(received()), { message: `${pattern} is answered` })

test('what can be checked before is answered before the file is asked for', async () => {
  assert.equal((await upload('StreamName=taken', bytes)).status, 201)
  const expect = ['Expect: 100-continue', `Content-Length: ${bytes.length}`]
  const cases = [
    ['StreamName=taken', expect, 409, 'capture-exists'],
    ['StreamName=..', expect, 400, 'bad-parameter'],
    ['', expect, 400, 'bad-parameter'],
    ['StreamName=b&FileName=a/b', expect, 400, 'bad-parameter'],
    ['StreamName=b&FileName=a%E2%80%AEb.pcap', expect, 400, 'bad-parameter'],
    ['StreamName=b&Name=b', expect, 400, 'bad-parameter'],
    ['StreamName=b', ['Expect: 100-continue', `Content-Length: ${BYTES_MAX + 1}`], 413, 'upload-too-large'],
  ] as const
  for (const [query, headers, status, code] of cases) {
    const { socket, received } = await opened(query, headers)
    await once(socket, 'close')
    const [answer, ...others] = rawAnswers(Buffer.from(received(), 'latin1'))
    assert.deepEqual([answer?.status, others.length], [status, 0], query)
    assert.equal((JSON.parse(String(answer?.body)) as { code: string }).code, code, query)
  }
  const { socket, received } = await opened('StreamName=asked', expect)
  await untilText(received, /^HTTP\/1\.1 100 Continue\r\n\r\n$/)
  socket.write(bytes)
  await untilText(received, /HTTP\/1\.1 201 Created/)
  socket.destroy()
  assert.ok((await stored()).includes('asked'))
  assert.ok(!(await stored()).includes('b'))
})

test('a user without the scope, and one without a login, upload nothing', async () => {
  const refused = await upload('StreamName=mine', bytes, 'user')
  assert.deepEqual([refused.status, refused.json().needed], [403, 'capture:upload'])
  const unknown = await httpGet(`${appliance.url}${PATH}?StreamName=mine`, { method: 'POST', body: bytes })
  assert.equal(unknown.status, 401)
  assert.ok(!(await stored()).includes('mine'))
})

test('a client that leaves in the middle leaves nothing', async () => {
  const { 'client-gone': before = 0 } = await outcomes()
  for (const framing of [`Content-Length: ${bytes.length}`, 'Transfer-Encoding: chunked']) {
    const { socket } = await opened('StreamName=left', [framing])
    socket.write(framing.startsWith('T') ? chunk(bytes.subarray(0, 1_000)) : bytes.subarray(0, 1_000))
    const isReceiving = async () => (await stored()).some((name) => name.startsWith('.receiving'))
    await eventually(isReceiving, { message: 'the file arrives' })
    socket.resetAndDestroy()
    await eventually(async () => !(await isReceiving()), { message: 'it is removed' })
  }
  await eventually(async () => (await outcomes())['client-gone'] === before + 2, {
    message: 'both are counted',
  })
  assert.ok(!(await stored()).includes('left'))
})

test('a file that turns out too large is refused in the middle, and the client reads why', async () => {
  const { socket, received } = await opened('StreamName=large', ['Transfer-Encoding: chunked'])
  const piece = chunk(Buffer.alloc(65_536))
  for (let sent = 0; sent <= BYTES_MAX; sent += 65_536) socket.write(piece)
  await untilText(received, /^HTTP\/1\.1 413 .*"code":"upload-too-large"/s)
  socket.destroy()
  await eventually(async () => !(await stored()).some((name) => name.startsWith('.')), {
    message: 'nothing is left',
  })
})

test('a client that stops sending is told, and its place is free again', async () => {
  await using here = await startTempAppliance({ config: { uploads: { idleTimeoutMs: 100 } } })
  const { socket, received } = await opened('StreamName=slow', ['Content-Length: 1000'], here)
  socket.write(bytes.subarray(0, 24))
  await untilText(received, /^HTTP\/1\.1 408 .*the client sent nothing for 0\.1 s/s)
  socket.destroy()
  await eventually(async () => (await stored(here)).length === 0, { message: 'nothing is left' })
})

test('files that are none, and those that become too large, are refused with their name', async () => {
  const text = await upload('StreamName=text&FileName=notes.txt', Buffer.from('this is no capture file'))
  assert.deepEqual([text.status, text.json().code], [400, 'bad-capture-file'])
  assert.match(String(text.json().detail), /^notes\.txt is neither PCAP nor pcapng/)
  const header = bytes.subarray(0, 24)
  const bomb = gzipSync(Buffer.concat([header, Buffer.alloc(2 ** 27)]))
  const grown = await upload('StreamName=bomb&FileName=b.gz', bomb)
  assert.deepEqual([grown.status, grown.json().code], [400, 'bad-capture-file'], grown.body.toString())
  const empty = await upload('StreamName=empty', Buffer.alloc(0))
  assert.match(String(empty.json().detail), /the request has no body/)
  const isLeft = async () => (await stored()).some((name) => /^\.|text|bomb|empty/.test(name))
  await eventually(async () => !(await isLeft()), { message: 'nothing is left' })
})

test('the rest of a damaged file is reported', async () => {
  const answer = await upload('StreamName=cut', bytes.subarray(0, bytes.length - 7))
  const { Packets, Damages } = answer.json()
  assert.deepEqual([answer.status, Packets], [201, '1999'])
  const [damage] = Damages as { Offset: string; Message: string }[]
  assert.ok(Number(damage?.Offset) > 24 && damage?.Message !== '', JSON.stringify(Damages))
})

test('a store without room refuses a file before it is sent, or as soon as that is known', async () => {
  const retention = { maxBytes: 100_000, minFreeBytes: 0, maxAgeMs: 0, onFull: 'roll', pinMs: 0 } as const
  await using full = await startTempAppliance({ retention })
  const url = `${full.url}${PATH}?StreamName=a`
  const asFull = { method: 'POST', user: full.credentials('full') }
  const announced = await httpGet(url, { ...asFull, body: bytes })
  assert.deepEqual([announced.status, announced.json().code], [507, 'store-full'])
  assert.match(
    String(announced.json().detail),
    /^a: the input needs more than the \d+ bytes available; nothing of it was kept; delete captures, or import on the device with --evict, which removes the oldest packets$/,
  )
  const headers = { 'transfer-encoding': 'chunked' }
  const streamed = await httpGet(url, { ...asFull, body: bytes, headers })
  assert.deepEqual([streamed.status, streamed.json().code], [507, 'store-full'])
  await eventually(async () => (await stored(full)).length === 0, { message: 'nothing is left' })
})

test('more uploads than allowed are refused, and all of them where none are', async () => {
  await using one = await startTempAppliance({ config: { uploads: { runningMax: 1 } } })
  const { socket: first } = await opened('StreamName=a', ['Content-Length: 9'], one)
  const isRunning = async () =>
    /^capfleet_uploads_running 1$/m.test((await one.get('/metrics')).body.toString())
  await eventually(isRunning, { message: 'the first runs' })
  const asFull = { method: 'POST', user: one.credentials('full'), body: bytes }
  const second = await httpGet(`${one.url}${PATH}?StreamName=b`, asFull)
  assert.deepEqual([second.status, second.headers['retry-after']], [429, '30'])
  first.destroy()
  await eventually(async () => !(await isRunning()), { message: 'its place is free' })
  assert.equal((await httpGet(`${one.url}${PATH}?StreamName=b`, asFull)).status, 201)
  await using none = await startTempAppliance({ config: { uploads: { runningMax: 0 } } })
  const off = { ...asFull, user: none.credentials('full') }
  assert.equal((await httpGet(`${none.url}${PATH}?StreamName=b`, off)).status, 501)
})

test('an upload ends when its user is removed', async () => {
  await using here = await startTempAppliance()
  const { socket, received } = await opened('StreamName=a', ['Content-Length: 1000'], here)
  await eventually(async () => (await stored(here)).length === 1, { message: 'the file arrives' })
  await here.removeUser('full')
  await untilText(received, /^HTTP\/1\.1 40[13] /)
  socket.destroy()
  await eventually(async () => (await stored(here)).length === 0, { message: 'nothing is left' })
})
