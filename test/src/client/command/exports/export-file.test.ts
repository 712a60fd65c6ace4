// `capfleet export get`: files whose transfer breaks off, and files that are not what they should be.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { gatewayEnvironment, hostedClient } from '../../../../support/processes/client-process.ts'
import { startStubGateway } from '../../../../support/servers/stub-gateway.ts'

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

interface StubFile {
  readonly name: string
  readonly bytes: Buffer
  /** The gateway's description of the file. */
  readonly sha256: string
}

const fileOf = (name: string, bytes: Buffer): StubFile => ({ name, bytes, sha256: sha256(bytes) })

/** An export of these files; each answer breaks off after `breakAfter` bytes, this many times. */
async function exporting(
  files: readonly StubFile[],
  { breaks = 0, breakAfter = 0, state = 'complete' } = {},
) {
  let left = breaks
  const ranges: string[] = []
  const sendFile = (req: IncomingMessage, res: ServerResponse): void => {
    const part = Number(new URL(req.url ?? '', 'http://stub').searchParams.get('Part'))
    const { bytes, sha256: etag } = files[part - 1] as StubFile
    const [, from] = /^bytes=(\d+)-$/.exec(req.headers.range ?? '') ?? []
    ranges.push(req.headers.range ?? '-')
    const isRest = from !== undefined && req.headers['if-range'] === `"${etag}"`
    const body = isRest ? bytes.subarray(Number(from)) : bytes
    res.writeHead(isRest ? 206 : 200, { ETag: `"${etag}"`, 'Content-Length': body.length })
    if (left === 0 || body.length < breakAfter) return void res.end(body)
    left -= 1
    res.write(body.subarray(0, breakAfter), () => setImmediate(() => res.destroy()))
  }
  const told = files.map(({ name, bytes, sha256: hash }) => ({
    name,
    bytes: String(bytes.length),
    sha256: hash,
  }))
  const stub = await startStubGateway({
    'GET /v1/exports/e1': (_req, res) => void res.end(JSON.stringify({ id: 'e1', state, files: told })),
    'GET /v1/exports/e1/manifest': (_req, res) => void res.end('{"version":1}'),
    'GET /v1/exports/e1/file': sendFile,
  })
  return { ...stub, ranges }
}

test('a file that breaks off twice is resumed by Range, and has the hash given by the export', async () => {
  const file = fileOf('day.pcap', randomBytes(3_000_000))
  await using gateway = await exporting([file], { breaks: 2, breakAfter: 1_000_000 })
  await using client = await hostedClient()
  const environment = gatewayEnvironment(gateway.url, 'user', 'secret')
  const { status, stderr } = await client.run(['export', 'get', 'e1'], { environment })
  assert.equal(status, 0, stderr)
  assert.equal(sha256(await readFile(join(client.folder, 'day.pcap'))), file.sha256)
  assert.deepEqual(await readdir(client.folder), ['day.pcap', 'e1.manifest.json'])
  assert.deepEqual(gateway.ranges.length, 3)
  assert.match(gateway.ranges.join(), /^-,bytes=\d+-,bytes=\d+-$/)
})

test('several files go into a folder; a part of an earlier run is gone on with, or replaced when it is of another file', async () => {
  const files = [fileOf('a.pcap', randomBytes(50_000)), fileOf('b.pcap', randomBytes(60_000))]
  await using gateway = await exporting(files)
  await using client = await hostedClient()
  const folder = join(client.folder, 'week')
  await mkdir(folder)
  await writeFile(join(folder, 'a.pcap.part'), files[0]?.bytes.subarray(0, 20_000) ?? '')
  await writeFile(join(folder, 'b.pcap.part'), Buffer.alloc(20_000))
  const environment = gatewayEnvironment(gateway.url, 'user', 'secret')
  const { status, stderr } = await client.run(['export', 'get', 'e1', '--folder', 'week'], { environment })
  assert.equal(status, 0, stderr)
  for (const { name, bytes } of files) assert.ok((await readFile(join(folder, name))).equals(bytes), name)
  assert.deepEqual(gateway.ranges, ['bytes=20000-', 'bytes=20000-', '-'])
})

test('7: a file that differs from the export stays a part', async () => {
  const bytes = randomBytes(50_000)
  await using gateway = await exporting([{ name: 'a.pcap', bytes, sha256: sha256(randomBytes(1)) }])
  await using client = await hostedClient()
  const environment = gatewayEnvironment(gateway.url, 'user', 'secret')
  const { status, stderr } = await client.run(['export', 'get', 'e1'], { environment })
  assert.equal(status, 7)
  assert.match(stderr, /arrived damaged/)
  assert.deepEqual(await readdir(client.folder), ['a.pcap.part'])
})

test('a name that leads out of the folder does not; a pipe gets the file alone', async () => {
  const file = fileOf('../../evil.pcap', randomBytes(10))
  await using gateway = await exporting([file])
  await using client = await hostedClient()
  const environment = gatewayEnvironment(gateway.url, 'user', 'secret')
  assert.equal((await client.run(['export', 'get', 'e1'], { environment })).status, 0)
  assert.deepEqual(await readdir(client.folder), ['e1.manifest.json', 'evil.pcap'])
  const piped = await client.run(['export', 'get', 'e1', '-o', '-'], { environment })
  assert.deepEqual([piped.status, piped.stdout], [0, file.bytes])
})

test('7: a partial export is there, and said to be partial', async () => {
  await using gateway = await exporting([fileOf('a.pcap', randomBytes(10))], { state: 'partial' })
  await using client = await hostedClient()
  const environment = gatewayEnvironment(gateway.url, 'user', 'secret')
  const { status, stderr } = await client.run(['export', 'get', 'e1'], { environment })
  assert.equal(status, 7)
  assert.match(stderr, /capfleet export fill e1/)
  assert.deepEqual(await readdir(client.folder), ['a.pcap', 'e1.manifest.json'])
})
