// The end of a cut download as a raw socket sees it: a reset on a direct connection, and an unfinished body behind
// proxies.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { DEVICE_API } from '../../../src/shared/contract/device-api.ts'
import { connectTo, rawAnswers } from '../../support/clients/raw-client.ts'
import type { FakeDevice } from '../../support/devices/fake-device.ts'
import { FLEET_RANGE, fleetPcap } from '../../support/devices/fake-fleet.ts'
import { type HttpAnswer, httpGet } from '../../support/http-get.ts'
import { writeBigCapture } from '../../support/packets/big-capture.ts'
import { gatewayWorld } from '../../support/processes/gateway-world.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import {
  startTempHaproxy,
  startTempNginx,
  WITHOUT_HAPROXY,
  WITHOUT_NGINX,
} from '../../support/processes/temp-proxy.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const PACKETS = 700
const RANGE = `/api/v1/pcap/timerange?${FLEET_RANGE}`
const MIB = 1_048_576

interface RawEnd {
  readonly bytes: Buffer
  /** The error of the reset; undefined if the other side ended the connection normally. */
  readonly code: string | undefined
}

async function ask(url: string, path: string, authorization: string, version = '1.1'): Promise<Socket> {
  const socket = await connectTo(url)
  socket.write(`GET ${path} HTTP/${version}\r\nHost: x\r\nAuthorization: ${authorization}\r\n\r\n`)
  return socket
}

async function readToEnd(socket: Socket): Promise<RawEnd> {
  const chunks: Buffer[] = []
  let code: string | undefined
  socket.on('error', (error: NodeJS.ErrnoException) => {
    code = error.code
  })
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  // once() would reject with the reset.
  await new Promise<void>((resolve) => socket.once('close', () => resolve()))
  return { bytes: Buffer.concat(chunks), code }
}

function assertUnfinished({ bytes }: RawEnd): void {
  const head = bytes.subarray(0, bytes.indexOf('\r\n\r\n')).toString('latin1')
  assert.match(head, /^transfer-encoding: chunked$/im)
  assert.doesNotMatch(head, /^content-length:/im)
  assert.deepEqual(
    rawAnswers(bytes).map(({ status, isWhole }) => [status, isWhole]),
    [[200, false]],
  )
}

const PROXIES = [
  ['nginx', WITHOUT_NGINX, startTempNginx],
  ['haproxy', WITHOUT_HAPROXY, startTempHaproxy],
] as const

/** What a client gets that asks for a later part. */
function assertRefused({ status, json }: HttpAnswer, way: RegExp): void {
  const { code, param, detail } = json()
  assert.deepEqual([status, code, param], [400, 'range-unsupported', 'Range'])
  assert.match(String(detail), way)
}

const DOWNLOAD_PATHS = Object.values(DEVICE_API).filter((endpoint) => 'context' in endpoint)

describe('a gateway', () => {
  const world = gatewayWorld(PACKETS)
  const ways = [
    ['a relay', `/devices/d0${RANGE}`],
    ['a merge', RANGE],
  ] as const
  const authorization = () => world.gateway.as.user.authorization
  /** Reads a download whose first device dies and then rejects retries. */
  async function readCut(dieAfterBytes: number, ...asked: Parameters<typeof ask>): Promise<RawEnd> {
    const dying = world.fleet[0] as FakeDevice
    dying.behaviour = { dieAfterBytes }
    const socket = await ask(...asked)
    const end = readToEnd(socket)
    await dying.until(() => dying.readers > 0)
    dying.behaviour = { problem: { status: 410, body: { code: 'aged-out' } } }
    return await end
  }

  for (const [name, path] of ways) {
    test(`cuts ${name} by a reset, after everything it has sent`, async () => {
      const boundary = fleetPcap(0, 300).length
      for (const dieAfterBytes of [boundary, boundary + 20]) {
        const end = await readCut(dieAfterBytes, world.gateway.url, path, authorization())
        assert.equal(end.code, 'ECONNRESET')
        assertUnfinished(end)
        assert.ok((rawAnswers(end.bytes)[0]?.body.length ?? 0) >= boundary)
      }
    })

    test(`cuts ${name} for an HTTP/1.0 client by a reset, too`, async () => {
      const { length } = fleetPcap(0, 300)
      const { code, bytes } = await readCut(length, world.gateway.url, path, authorization(), '1.0')
      assert.equal(code, 'ECONNRESET')
      assert.ok(bytes.length > length)
    })

    for (const [proxyName, skip, start] of PROXIES)
      test(`cuts ${name} so that ${proxyName} leaves its answer unfinished`, { skip }, async () => {
        await using proxy = await start(world.gateway.url)
        assertUnfinished(await readCut(fleetPcap(0, 300).length, proxy.url, path, authorization()))
      })
  }

  const get = (path: string, range: string, method = 'GET') =>
    httpGet(world.gateway.url + path, { method, headers: { ...world.gateway.as.user, range } })

  test('refuses the later part of a download on every path, before a device is asked', async () => {
    const selection = `StreamName=c&Start=1&Stop=2&TSBegin=1&TSEnd=2`
    for (const root of ['', '/devices/d0'])
      for (const { path } of DOWNLOAD_PATHS)
        assertRefused(await get(`${root}${path}?${selection}`, 'bytes=1000-'), /Resume=.*&Offset=/)
    assert.deepEqual(
      world.fleet.flatMap(({ requests }) => requests),
      [],
    )
  })

  test('answers a Range that begins with the first byte, is invalid, or belongs to a HEAD with the whole', async () => {
    const [, path] = ways[0]
    for (const range of ['bytes=0-', 'bytes=0-99', 'bytes=x-', 'packets=7-']) {
      const { status, headers, body } = await get(path, range)
      assert.deepEqual([status, headers['content-range']], [200, undefined])
      assert.ok(body.equals(fleetPcap(0, PACKETS)))
    }
    assert.equal((await get(path, 'bytes=1000-', 'HEAD')).status, 200)
  })

  test('resumes by Resume and Offset what it refuses to resume by Range', async () => {
    const [, path] = ways[0]
    const { headers, body } = await httpGet(world.gateway.url + path, { headers: world.gateway.as.user })
    assertRefused(await get(path, 'bytes=5000-'), /Offset/)
    const rest = await httpGet(
      `${world.gateway.url}${path}&Resume=${headers['capfleet-request-id']}&Offset=5000`,
      { headers: world.gateway.as.user },
    )
    assert.ok(rest.body.equals(body.subarray(5_000)))
  })

  test('curl -C - takes no problem for the end of its file, however long that is', async () => {
    await using folder = await tempFolder()
    const [, path] = ways[0]
    const { body } = await get(path, 'bytes=500-')
    const file = join(folder.path, 'part.pcap')
    const script = `head -c ${body.length} /dev/zero > ${file}; exec curl -sS -C - -H "$AS" -o ${file} '${world.gateway.url}${path}'`
    const env = { ...process.env, AS: `Authorization: ${authorization()}` }
    const status = await new Promise((resolve) =>
      execFile('sh', ['-c', script], { env }, (error) => resolve(error?.code ?? 0)),
    )
    assert.equal(status, 33)
  })
})

describe('an appliance', () => {
  const parts = new AsyncDisposableStack()
  let appliance: TempAppliance
  let big: string

  before(async () => {
    appliance = parts.use(await startTempAppliance({ segmentBytes: 2 * MIB }))
    big = join(appliance.folder, 'big.pcap')
    await writeBigCapture(big)
  })
  after(() => parts.disposeAsync())

  /** Reads a download whose capture is deleted after its first bytes, before the client reads more. */
  async function readDeleted(url: string, name: string, version = '1.1'): Promise<RawEnd> {
    await appliance.importFiles(name, big)
    const authorization = `Basic ${btoa(appliance.credentials('full'))}`
    const socket = await ask(url, `/api/v1/pcap/single?StreamName=${name}`, authorization, version)
    await once(socket, 'readable')
    assert.equal((await appliance.get(`/pcap/del?StreamName=${name}&Force=1`)).status, 200)
    return await readToEnd(socket)
  }

  test('cuts a download by a reset', async () => {
    const end = await readDeleted(appliance.url, 'direct')
    assert.equal(end.code, 'ECONNRESET')
    assertUnfinished(end)
    assert.equal((await readDeleted(appliance.url, 'old', '1.0')).code, 'ECONNRESET')
  })

  for (const [proxyName, skip, start] of PROXIES)
    test(`cuts a download so that ${proxyName} leaves its answer unfinished`, { skip }, async () => {
      await using proxy = await start(appliance.url)
      assertUnfinished(await readDeleted(proxy.url, proxyName))
    })

  test('refuses the later part of a download on every path, and ignores other ranges', async () => {
    await appliance.importFiles('kept', big)
    const selection = `StreamName=kept&Start=1&Stop=2&TSBegin=1&TSEnd=2`
    for (const { path } of DOWNLOAD_PATHS) {
      const get = (range: string, method = 'GET') =>
        appliance.get(`${path}?${selection}&MaxPackets=1`, { method, headers: { range } })
      assertRefused(await get('bytes=1000-'), /After=.*Resume and Offset/)
      for (const range of ['bytes=0-', 'bytes=a-']) assert.equal((await get(range)).status, 200, path)
      assert.equal((await get('bytes=1000-', 'HEAD')).status, 200)
    }
  })
})
