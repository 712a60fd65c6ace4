// Uploads whose appliance or recorder is killed in the middle, and uploads onto a disk that is full: nothing of them
// is listed or left, and the same file can be uploaded afterwards.
import assert from 'node:assert/strict'
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { type ClientRequest, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, describe, type TestContext, test } from 'node:test'
import { stringify } from 'yaml'
import { type ChildProgram, startChildProgram } from '../../../src/demo/child-program.ts'
import { putUser } from '../../../src/shared/auth/edit-users-file.ts'
import { fillBytes, mountSmallDisk } from '../../support/disks/small-disk.ts'
import { eventually } from '../../support/eventually.ts'
import { httpGet } from '../../support/http-get.ts'
import { OWN_LOOPBACK } from '../../support/network/own-loopback.ts'
import { writeBigCapture } from '../../support/packets/big-capture.ts'
import { ApplianceProcess } from '../../support/processes/appliance-process.ts'
import { startTempGateway, type TempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { APPLIANCE_PASSWORD } from '../../support/suite-secrets.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const PATH = '/v1/captures'
const PACKETS = 16_000
const SENT_FIRST_BYTES = 4 * 2 ** 20
const DISK_BYTES = 64 * 2 ** 20
const STOP_MS = 10_000
const LOGIN = { authorization: `Basic ${btoa(`full:${APPLIANCE_PASSWORD}`)}` }

interface Device extends AsyncDisposable {
  readonly url: string
  readonly storePath: string
  /** Like kill -9. It has another address when it is started again. */
  killAppliance(): Promise<void>
  restartAppliance(): Promise<void>
  killRecorder(): Promise<void>
  restartRecorder(): Promise<void>
}

/** An appliance and a recorder, each in its own process. */
async function startDevice(folder: string, storePath = join(folder, 'store')): Promise<Device> {
  await using parts = new AsyncDisposableStack()
  const configPath = join(folder, 'appliance.yaml')
  await putUser(join(folder, 'users.yaml'), { name: 'full', role: 'full' }, APPLIANCE_PASSWORD)
  const config = {
    listen: { host: OWN_LOOPBACK, port: 0 },
    store: storePath,
    auth: { users: './users.yaml' },
    logLevel: 'error',
    retention: { minFreeBytes: 0 },
    imports: { segmentBytes: 2 ** 20 },
  }
  await writeFile(configPath, stringify(config))
  const start = (): Promise<ChildProgram> =>
    startChildProgram('recorder', ['recorder', '--config', configPath], {
      logPath: join(folder, 'recorder.log'),
      appends: true,
    })
  let recorder = await start()
  parts.defer(() => recorder.stop(STOP_MS))
  let appliance = await ApplianceProcess.start(configPath)
  parts.defer(() => appliance[Symbol.asyncDispose]())
  const owner = parts.move()
  return {
    storePath,
    get url() {
      return appliance.url
    },
    killAppliance: () => appliance[Symbol.asyncDispose](),
    restartAppliance: async () => {
      appliance = await ApplianceProcess.start(configPath)
    },
    killRecorder: async () => {
      process.kill(recorder.pid, 'SIGKILL')
      await recorder.ended
    },
    restartRecorder: async () => {
      recorder = await start()
    },
    [Symbol.asyncDispose]: () => owner.disposeAsync(),
  }
}

interface Sending {
  readonly request: ClientRequest
  /** Its status and code; undefined if the connection broke. */
  readonly answer: Promise<{ readonly status: number | undefined; readonly code: unknown } | undefined>
}

/** Sends the head and the first bytes of a file, without saying how long it is. */
function begun(url: string, query: string, headers: object, bytes: Buffer): Sending {
  const sent = request(`${url}${PATH}?${query}`, { method: 'POST', headers: { ...headers } })
  const answer = new Promise<Awaited<Sending['answer']>>((resolve) => {
    sent.once('error', () => resolve(undefined))
    sent.once('response', (response) => {
      text(response).then(
        (body) => resolve({ status: response.statusCode, code: JSON.parse(body).code }),
        () => resolve(undefined),
      )
    })
  })
  sent.write(bytes.subarray(0, SENT_FIRST_BYTES))
  return { request: sent, answer }
}

/** Files of the store that are not there yet, or were not removed. */
async function unfinished({ storePath }: Device): Promise<string[]> {
  return (await readdir(join(storePath, 'captures'))).filter((name) => name.startsWith('.'))
}

async function isArriving(device: Device): Promise<boolean> {
  const [name] = await unfinished(device)
  if (name === undefined) return false
  const path = join(device.storePath, 'captures', name)
  const { size } = await stat(path).catch(() => ({ size: 0 }))
  return size > 0
}

async function listed({ url }: Device): Promise<readonly string[]> {
  const { List } = (await httpGet(`${url}/stream/list`, { headers: LOGIN })).json()
  return (List as { StreamName: string }[]).map(({ StreamName }) => StreamName)
}

async function uploaded({ url }: Device, name: string, bytes: Buffer): Promise<void> {
  const address = `${url}${PATH}?StreamName=${name}`
  const answer = await httpGet(address, { method: 'POST', headers: LOGIN, body: bytes })
  assert.equal(answer.status, 201, answer.body.toString())
  assert.equal(answer.json().Packets, String(PACKETS))
}

describe('uploads that something interrupts', () => {
  const parts = new AsyncDisposableStack()
  let bytes: Buffer

  before(async () => {
    const folder = parts.use(await tempFolder())
    await writeBigCapture(join(folder.path, 'a.pcap'), PACKETS)
    bytes = await readFile(join(folder.path, 'a.pcap'))
    assert.ok(bytes.length > 2 * SENT_FIRST_BYTES)
  })
  after(() => parts.disposeAsync())

  test('a killed appliance stores nothing of it, and the gateway says that the device broke off', async () => {
    await using folder = await tempFolder()
    await using device = await startDevice(folder.path)
    await using redis = await TempRedis.create()
    process.env.UPLOAD_FAILURES_PASSWORD = APPLIANCE_PASSWORD
    const login = { user: 'full', password: { env: 'UPLOAD_FAILURES_PASSWORD' } }
    const devices = [{ name: 'east', url: device.url, ...login }]
    await using gateway: TempGateway = await startTempGateway([], redis.url, { devices })
    const direct = begun(device.url, 'StreamName=direct', LOGIN, bytes)
    const passed = begun(gateway.url, 'Device=east&StreamName=passed', gateway.as.full, bytes)
    await eventually(async () => (await unfinished(device)).length === 2, { message: 'both arrive' })
    await device.killAppliance()
    assert.equal(await direct.answer, undefined)
    passed.request.end(bytes.subarray(SENT_FIRST_BYTES))
    assert.deepEqual(await passed.answer, { status: 502, code: 'device-unreachable' })
    await eventually(async () => (await unfinished(device)).length === 0, { message: 'nothing is left' })
    await device.restartAppliance()
    assert.deepEqual(await listed(device), [])
    await uploaded(device, 'direct', bytes)
    assert.deepEqual(await listed(device), ['direct'])
  })

  test('a killed recorder stores nothing of it, and its start removes what had arrived', async () => {
    await using folder = await tempFolder()
    await using device = await startDevice(folder.path)
    const sending = begun(device.url, 'StreamName=a', LOGIN, bytes)
    await eventually(() => isArriving(device), { message: 'it arrives' })
    await device.killRecorder()
    sending.request.end(bytes.subarray(SENT_FIRST_BYTES))
    assert.deepEqual(await sending.answer, { status: 503, code: 'store-unavailable' })
    await device.restartRecorder()
    await eventually(async () => (await unfinished(device)).length === 0, { message: 'nothing is left' })
    assert.deepEqual(await listed(device), [])
    await uploaded(device, 'a', bytes)
  })

  test('a disk that is full in the middle: 507, and the file fits once there is room', async (t: TestContext) => {
    const disk = await mountSmallDisk(DISK_BYTES)
    if (typeof disk === 'string') return t.skip(disk)
    await using _mounted = disk
    await using device = await startDevice(disk.beside, join(disk.path, 'store'))
    const sending = begun(device.url, 'StreamName=a', LOGIN, bytes)
    await eventually(() => isArriving(device), { message: 'it arrives' })
    await fillBytes(join(disk.path, 'full'))
    sending.request.end(bytes.subarray(SENT_FIRST_BYTES))
    assert.deepEqual(await sending.answer, { status: 507, code: 'store-full' })
    assert.deepEqual([await unfinished(device), await listed(device)], [[], []])
    await rm(join(disk.path, 'full'))
    await uploaded(device, 'a', bytes)
    assert.deepEqual(await listed(device), ['a'])
  })
})
