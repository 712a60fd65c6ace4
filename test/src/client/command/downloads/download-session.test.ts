// How a session handles a gateway whose receipt differs from what it sends, or is missing.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { makePacket, makePcap } from '../../../../support/packets/packet-maker.ts'
import { pause } from '../../../../support/pause.ts'
import { gatewayEnvironment, hostedClient } from '../../../../support/processes/client-process.ts'
import { type StubAnswer, startStubGateway } from '../../../../support/servers/stub-gateway.ts'

const BODY = makePcap(
  Array.from({ length: 50 }, (_, index) => makePacket(BigInt(index), `packet ${index}`, 200)),
)
const EMPTY = Buffer.alloc(0)
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const whole = (bytes: Buffer) => ({
  status: 'complete',
  bytes: String(bytes.length),
  sha256: sha256(bytes),
  devices: [],
})

/** Answers each request with the next of `answers`, and each receipt request with the next receipt of its place. */
async function downloading(
  answers: readonly StubAnswer[],
  receipts: readonly (readonly object[])[],
  type = '',
) {
  let request = -1
  const asked = answers.map(() => 0)
  const mediaType = type === '' ? 'application/vnd.tcpdump.pcap' : type
  const ofRequest = receipts.map((_, index): [string, StubAnswer] => [
    `GET /v1/requests/r${index}`,
    (_req, res) => {
      const list = receipts[index] ?? []
      const at = asked[index] ?? 0
      asked[index] = at + 1
      res.end(JSON.stringify(list[Math.min(at, list.length - 1)]))
    },
  ])
  return await startStubGateway({
    'GET /api/v1/pcap/single': (req, res) => {
      request += 1
      res.writeHead(200, { 'Content-Type': mediaType, 'Capfleet-Request-Id': `r${request}` })
      answers[request]?.(req, res)
    },
    ...Object.fromEntries(ofRequest),
  })
}

const sending =
  (bytes: Buffer): StubAnswer =>
  (_req, res) =>
    void res.end(bytes)

test('the receipt of another gateway may come late', async () => {
  const streaming = { status: 'streaming', bytes: '0', sha256: null, devices: [] }
  await using gateway = await downloading([sending(BODY)], [[streaming, streaming, whole(BODY)]])
  await using client = await hostedClient()
  const environment = gatewayEnvironment(gateway.url, 'a', 'b')
  const { status, stderr } = await client.run(['get', 'demo', '-o', 'a.pcap'], { environment })
  assert.equal(status, 0, stderr)
  assert.ok((await readFile(join(client.folder, 'a.pcap'))).equals(BODY))
})

test('a gateway that died after the last byte is asked for the rest, which is empty', async () => {
  const lost = { status: 'failed', bytes: '100', sha256: null, devices: [] }
  await using gateway = await downloading([sending(BODY), sending(EMPTY)], [[lost], [whole(EMPTY)]])
  await using client = await hostedClient()
  const environment = gatewayEnvironment(gateway.url, 'a', 'b')
  const { status, stderr } = await client.run(['get', 'demo', '-o', 'a.pcap'], { environment })
  assert.equal(status, 0, stderr)
  assert.ok((await readFile(join(client.folder, 'a.pcap'))).equals(BODY))
  assert.ok(
    gateway.asked.some((asked) => asked.endsWith(`&Resume=r0&Offset=${BODY.length}`)),
    gateway.asked.join('\n'),
  )
})

test('a compressed one is asked for again, and what came is not kept beside it', async () => {
  const bytes = Buffer.from('compressed, or so it says')
  const lost = { status: 'failed', bytes: '100', sha256: null, devices: [] }
  await using gateway = await downloading(
    [sending(bytes), sending(bytes)],
    [[lost], [whole(bytes)]],
    'application/zstd',
  )
  await using client = await hostedClient()
  const environment = gatewayEnvironment(gateway.url, 'a', 'b')
  const { status, stderr } = await client.run(['get', 'demo', '-o', 'a.zst', '--compression', 'zstd'], {
    environment,
  })
  assert.equal(status, 0, stderr)
  assert.ok((await readFile(join(client.folder, 'a.zst'))).equals(bytes))
  assert.ok(!gateway.asked.some((asked) => asked.includes('Resume=')), gateway.asked.join('\n'))
})

test('a part that the gateway does not continue is asked for again, from its first byte on', async () => {
  let request = -1
  const detail = 'Resume cannot resume request r0: it continued without packets of lon1; request it again'
  await using gateway = await startStubGateway({
    'GET /api/v1/pcap/single': (req, res) => {
      request += 1
      if (req.url?.includes('Resume=r0')) {
        res.writeHead(400, { 'Content-Type': 'application/problem+json' })
        res.end(JSON.stringify({ status: 400, code: 'bad-parameter', param: 'Resume', detail }))
        return
      }
      const id = `r${request}`
      res.writeHead(200, {
        'Content-Type': 'application/vnd.tcpdump.pcap',
        'Capfleet-Request-Id': id,
        'Transfer-Encoding': 'chunked',
      })
      if (request > 0) res.end(BODY)
      // Later, because a client drops received bytes when the connection breaks.
      else
        res.write(
          BODY.subarray(0, 500),
          () =>
            void pause(300, 'a client drops bytes that have arrived when the connection breaks').then(() =>
              res.destroy(),
            ),
        )
    },
    'GET /v1/requests/r2': (_req, res) => void res.end(JSON.stringify(whole(BODY))),
  })
  await using client = await hostedClient()
  const environment = gatewayEnvironment(gateway.url, 'a', 'b')
  const { status, stderr } = await client.run(['get', 'demo', '-o', 'a.pcap'], { environment })
  assert.equal(status, 0, stderr)
  assert.match(stderr, /continued without packets of lon1; request it again: starting over/)
  assert.ok((await readFile(join(client.folder, 'a.pcap'))).equals(BODY))
})

for (const [what, receipt] of [
  ['another hash', { ...whole(BODY), sha256: sha256(EMPTY) }],
  ['another length', { ...whole(BODY), bytes: String(BODY.length + 1) }],
] as const) {
  test(`7: a receipt with ${what}: the file gets no name`, async () => {
    await using gateway = await downloading([sending(BODY)], [[receipt]])
    await using client = await hostedClient()
    const environment = gatewayEnvironment(gateway.url, 'a', 'b')
    const { status, stderr } = await client.run(['get', 'demo', '-o', 'a.pcap'], { environment })
    assert.equal(status, 7)
    assert.match(
      stderr,
      /differs from what the gateway sent: .* download again with --force \[wrong-digest\]/,
    )
    assert.deepEqual(await readdir(client.folder), ['a.pcap.part', 'a.pcap.part.json'])
  })
}

test('7: damaged blocks are named with their device, and the file is kept', async () => {
  const devices = [
    { device: 'lon1', missing: null, corruptBlocks: '2' },
    { device: 'nyc1', missing: null, corruptBlocks: '0' },
  ]
  await using gateway = await downloading([sending(BODY)], [[{ ...whole(BODY), status: 'partial', devices }]])
  await using client = await hostedClient()
  const environment = gatewayEnvironment(gateway.url, 'a', 'b')
  const { status, stderr } = await client.run(['get', 'demo', '-o', 'a.pcap'], { environment })
  assert.equal(status, 7)
  assert.match(stderr, /packets are missing: 2 damaged blocks of lon1 \[partial\]/)
  assert.deepEqual(await readdir(client.folder), ['a.pcap'])
})

test('7: a download that may be incomplete is kept, and the device is named', async () => {
  const devices = [{ device: 'lon1', status: 'unverified', missing: null, corruptBlocks: null }]
  await using gateway = await downloading(
    [sending(BODY)],
    [[{ ...whole(BODY), status: 'unverified', devices }]],
  )
  await using client = await hostedClient()
  const { status, stderr } = await client.run(['get', 'demo', '-o', 'a.pcap'], {
    environment: gatewayEnvironment(gateway.url, 'a', 'b'),
  })
  assert.equal(status, 7)
  assert.match(stderr, /packets may be missing: lon1 ended .* by closing the connection.* \[unverified\]/)
  assert.deepEqual(await readdir(client.folder), ['a.pcap'])
})

test('7: a partial download is kept, and the hole is named', async () => {
  const missing = { fromNs: '1793610060000000000', toNs: '1793610070000000000' }
  const partial = { ...whole(BODY), status: 'partial', devices: [{ device: 'lon1', missing }] }
  await using gateway = await downloading([sending(BODY)], [[partial]])
  await using client = await hostedClient()
  const environment = gatewayEnvironment(gateway.url, 'a', 'b')
  const { status, stderr } = await client.run(['get', 'demo', '-o', 'a.pcap'], { environment })
  assert.equal(status, 7)
  assert.match(
    stderr,
    /packets are missing: lon1 from 2026-11-02 09:01:00Z to 2026-11-02 09:01:10Z \[partial\]/,
  )
  assert.deepEqual(await readdir(client.folder), ['a.pcap'])
})

test('6: what is no capture file is not kept as one', async () => {
  for (const [body, type] of [
    [Buffer.from('<html>welcome</html>'), 'text/html'],
    [Buffer.alloc(1_000, 0xee), ''],
  ] as const) {
    await using gateway = await downloading([sending(body)], [[whole(body)]], type)
    await using client = await hostedClient()
    const environment = gatewayEnvironment(gateway.url, 'a', 'b')
    const { status, stderr } = await client.run(['get', 'demo', '-o', 'a.pcap'], { environment })
    assert.equal(status, 6, stderr)
    assert.ok(!(await readdir(client.folder)).includes('a.pcap'))
  }
})
