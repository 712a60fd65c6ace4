// A capture file is uploaded to a device through the gateway: with curl, over sockets, and with the command line.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { auditEntries } from '../support/access/temp-audit.ts'
import { connectTo } from '../support/clients/raw-client.ts'
import { ApiDevice } from '../support/devices/api-device.ts'
import { eventually } from '../support/eventually.ts'
import { type HttpAnswer, httpGet } from '../support/http-get.ts'
import { OWN_LOOPBACK } from '../support/network/own-loopback.ts'
import { writeBigCapture } from '../support/packets/big-capture.ts'
import { gatewayEnvironment, type TempClient, tempClient } from '../support/processes/client-process.ts'
import { startTempAppliance, type TempAppliance } from '../support/processes/temp-appliance.ts'
import { startTempGateway, type TempGateway } from '../support/processes/temp-gateway.ts'
import { TempRedis } from '../support/processes/temp-redis.ts'
import { APPLIANCE_PASSWORD, USER_PASSWORD } from '../support/suite-secrets.ts'

const PATH = '/v1/captures'
const PACKETS = 4_000

describe('uploads through the gateway', () => {
  const parts = new AsyncDisposableStack()
  let gateway: TempGateway
  let appliance: TempAppliance
  let client: TempClient
  let breaking: Server
  let file: string
  let bytes: Buffer

  before(async () => {
    const redis = parts.use(await TempRedis.create())
    appliance = parts.use(await startTempAppliance())
    const foreign = parts.use(await ApiDevice.start('foreign', 1))
    // It accepts the request and leaves in the middle of the file.
    breaking = createServer((_req, res) => void res.writeHead(404, { 'capfleet-request-id': '1' }).end())
    breaking.on('checkContinue', (req, res: ServerResponse) => {
      res.writeContinue()
      req.once('data', () => req.socket.resetAndDestroy())
    })
    breaking.listen(0, OWN_LOOPBACK)
    await once(breaking, 'listening')
    parts.defer(() => void breaking.close())
    process.env.UPLOADS_TEST_PASSWORD = APPLIANCE_PASSWORD
    const login = { user: 'full', password: { env: 'UPLOADS_TEST_PASSWORD' } }
    const { port } = breaking.address() as AddressInfo
    const devices = [
      { name: 'east', url: appliance.url, ...login },
      { ...foreign.config, kind: 'api', ...login },
      { name: 'breaking', url: `http://${OWN_LOOPBACK}:${port}`, kind: 'capfleet', ...login },
    ]
    const settings = { devices, uploads: { bytesMax: 2 ** 26, perUserMax: 1 } }
    gateway = parts.use(await startTempGateway([], redis.url, settings))
    client = parts.use(await tempClient())
    file = join(client.folder, 'monday 1.pcap')
    await writeBigCapture(file, PACKETS)
    bytes = await readFile(file)
  })
  after(() => parts.disposeAsync())

  const stored = (): Promise<string[]> => readdir(join(appliance.storePath, 'captures'))
  const upload = (query: string, body: Uint8Array, user = 'full', path = PATH): Promise<HttpAnswer> =>
    httpGet(`${gateway.url}${path}?${query}`, { method: 'POST', body, headers: gateway.basic(user) })
  const capfleet = (args: readonly string[], input?: string) =>
    client.run(args, {
      environment: gatewayEnvironment(gateway.url, 'full', USER_PASSWORD),
      ...(input === undefined ? {} : { input }),
    })

  /** What tcpdump reads from a file: the time, the bytes and the length of each packet. */
  function dumped(path: string): string {
    const run = spawnSync('tcpdump', ['-nn', '-tt', '-xx', '-r', path], {
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    })
    assert.equal(run.status, 0, run.stderr)
    return run.stdout
  }
  const cameBack = async (name: string): Promise<void> => {
    const back = join(client.folder, `${name}.back`)
    const { status, stderr } = await capfleet(['get', name, '-d', 'east', '-o', back])
    assert.equal(status, 0, stderr)
    assert.ok(dumped(back) === dumped(file), `the packets of ${name} are those of the file`)
  }

  test('curl uploads a file, at the root and below the device, and it comes back byte for byte', async () => {
    for (const [name, address] of [
      ['rooted', `${PATH}?Device=east&StreamName=rooted`],
      ['below', `/devices/east${PATH}?StreamName=below`],
    ] as const) {
      const flags = ['-sS', '-X', 'POST', '-T', file, '-u', `full:${USER_PASSWORD}`]
      const curl = spawn('curl', [...flags, `${gateway.url}${address}`], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      const answer = JSON.parse(String(await buffer(curl.stdout))) as Record<string, unknown>
      assert.deepEqual([answer.StreamName, answer.Packets, answer.Damages], [name, String(PACKETS), []])
      await cameBack(name)
    }
  })

  test('the command line uploads files and pipes, and says what it did', async () => {
    const { status, stdout, stderr } = await capfleet(['upload', file, '--device', 'east'])
    assert.deepEqual([status, stdout.toString()], [0, ''], stderr)
    assert.match(stderr, /^upload monday_1: 4,000 packets, [\d.]+ MiB in the store\n$/)
    await cameBack('monday_1')
    const again = await capfleet(['upload', file, '-d', 'east'])
    assert.deepEqual(
      [again.status, /monday_1: .*already exists.*\[capture-exists/.test(again.stderr)],
      [2, true],
      again.stderr,
    )

    // A pipe: its size is not known before its end.
    const cat = spawn('cat', [file], { stdio: ['ignore', 'pipe', 'inherit'] })
    const piped = client.start(['upload', '-', '-d', 'east', '--name', 'piped'], {
      environment: gatewayEnvironment(gateway.url, 'full', USER_PASSWORD),
      input: cat.stdout,
    })
    assert.deepEqual([(await piped.ended).status], [0], piped.said())
    await cameBack('piped')
  })

  test('mistakes are told before anything is sent, in words of the command line', async () => {
    const cases = [
      [['upload', file], 2, /--device/],
      [['upload', '-', '-d', 'east'], 2, /standard input has no name; give the capture one with --name/],
      [['upload', 'no-such.pcap', '-d', 'east'], 2, /the file no-such\.pcap does not exist/],
      [['upload', client.folder, '-d', 'east'], 2, /is a folder/],
      [['upload', file, '-d', 'east', '--name', 'a b'], 2, /--name must be 1 to 128 letters.*"a b"/],
      [['upload', file, '-d', 'east,foreign', '--name', 'x'], 2, /--device must name one device/],
      [
        ['upload', file, '-d', 'foreign', '--name', 'x'],
        2,
        /foreign is a third-party device.*capfleet devices lists/,
      ],
      [['upload', file, '-d', 'nowhere', '--name', 'x'], 4, /nowhere/],
    ] as const
    for (const [args, expected, pattern] of cases) {
      const { status, stderr } = await capfleet(args)
      assert.deepEqual([status, pattern.test(stderr)], [expected, true], `${args.join(' ')}: ${stderr}`)
    }
    assert.ok(!(await stored()).includes('x'))
  })

  test('a user without the right, an old device and one that breaks off: an error that says so', async () => {
    const refused = await upload('Device=east&StreamName=y', bytes, 'user')
    assert.deepEqual([refused.status, refused.json().needed], [403, 'capture:upload'])
    const broken = await upload('Device=breaking&StreamName=y', bytes)
    assert.deepEqual([broken.status, broken.json().code], [502, 'device-unreachable'])
    assert.ok(!(await stored()).includes('y'))
  })

  test('what the device refuses reaches the client as it is, in the middle of the file too', async () => {
    const text = await upload('Device=east&StreamName=z&FileName=n.txt', Buffer.alloc(2 ** 22, 'no capture '))
    assert.deepEqual([text.status, text.json().code], [400, 'bad-capture-file'])
    assert.match(String(text.json().detail), /^n\.txt is neither PCAP nor pcapng/)
    const large = await upload('Device=east&StreamName=z', Buffer.alloc(2 ** 26 + 1))
    assert.deepEqual([large.status, large.json().code], [413, 'upload-too-large'])
    assert.ok(!(await stored()).some((name) => name === 'z' || name.startsWith('.')))
  })

  test('a client that leaves in the middle leaves nothing, and frees its place', async () => {
    const socket = await connectTo(gateway.url)
    const { authorization } = gateway.as.full
    socket.write(
      `POST ${PATH}?Device=east&StreamName=left HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n` +
        `Content-Length: ${bytes.length}\r\n\r\n`,
    )
    socket.write(bytes.subarray(0, 100_000))
    const isReceiving = async () => (await stored()).some((name) => name.startsWith('.receiving'))
    await eventually(isReceiving, { message: 'the file arrives at the device' })
    const second = await upload('Device=east&StreamName=second', bytes)
    assert.deepEqual([second.status, second.json().code], [429, 'too-many-requests'])
    socket.resetAndDestroy()
    await eventually(async () => !(await isReceiving()), { message: 'nothing is left' })
    const isFree = async () => (await upload('Device=east&StreamName=second', bytes)).status === 201
    await eventually(isFree, { message: 'the place is free' })
    assert.ok(!(await stored()).includes('left'))
  })

  test('the audit has each upload with its bytes and packets', async () => {
    const entries = await auditEntries(join(gateway.config.home, 'audit'))
    const of = (capture: string) => entries.find((entry) => entry.capture === capture)
    const begin = of('rooted')
    assert.deepEqual([begin?.event, begin?.user, begin?.path], ['control.begin', 'full', PATH])
    const end = entries.find(
      ({ event, requestId }) => event === 'control.end' && requestId === begin?.requestId,
    )
    assert.deepEqual(
      [end?.status, end?.devices, end?.bytes, end?.packets],
      [201, ['east'], bytes.length, String(PACKETS)],
    )
    const left = of('left')
    const leftEnd = entries.find(
      ({ event, requestId }) => event === 'control.end' && requestId === left?.requestId,
    )
    assert.ok(Number(leftEnd?.bytes) > 0 && leftEnd?.packets === undefined, JSON.stringify(leftEnd))
    const { body } = await httpGet(`${gateway.url}/metrics`)
    assert.match(body.toString(), /^capfleet_uploads_total\{outcome="client-gone"\} 1$/m)
    assert.match(body.toString(), /^capfleet_uploads_running 0$/m)
  })
})
