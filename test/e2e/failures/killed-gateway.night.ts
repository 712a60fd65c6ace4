// `capfleet get` with gateways that are killed while they send: real processes, a real Redis, real appliances.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { eventually } from '../../support/eventually.ts'
import { httpGet } from '../../support/http-get.ts'
import { writeBigCapture } from '../../support/packets/big-capture.ts'
import { gatewayEnvironment, type TempClient, tempClient } from '../../support/processes/client-process.ts'
import { GatewayFront } from '../../support/processes/gateway-front.ts'
import { GATEWAY_CREDENTIALS, GatewayProcess } from '../../support/processes/gateway-process.ts'
import { startTempAppliance } from '../../support/processes/temp-appliance.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const PACKETS = 30_000
const STEP_BYTES = 12_000_000
const KILLS = 3
const [USER = '', PASSWORD = ''] = GATEWAY_CREDENTIALS.split(':')

describe('a gateway is killed while capfleet get downloads', () => {
  const parts = new AsyncDisposableStack()
  let front: GatewayFront
  let gateway: GatewayProcess
  let client: TempClient
  let rangeFlags: readonly string[] = []
  let whole = ''

  before(async () => {
    const folder = parts.use(await tempFolder())
    const redis = parts.use(await TempRedis.create())
    await redis.settle('capfleet')
    const devices: Record<string, unknown>[] = []
    let startNs = 0n
    for (const name of ['east', 'west']) {
      const appliance = parts.use(await startTempAppliance())
      const path = join(appliance.folder, 'big.pcap')
      startNs = (await writeBigCapture(path, PACKETS)).startNs
      await appliance.importFiles('big', path)
      const [user, password = ''] = appliance.credentials('user').split(':')
      devices.push({ name, url: appliance.url, user, password: { env: 'DEVICE_PASSWORD' } })
      process.env.DEVICE_PASSWORD = password
    }
    const environment = { DEVICE_PASSWORD: process.env.DEVICE_PASSWORD ?? '' }
    const config = { redis: { url: redis.url }, devices }
    gateway = parts.use(
      await GatewayProcess.start({ folder: folder.path, name: 'gateway', config, environment }),
    )
    front = parts.use(await GatewayFront.start())
    client = parts.use(await tempClient())
    const endNs = startNs + BigInt(PACKETS) * 1_000_000n
    rangeFlags = ['--begin', String(startNs), '--end', String(endNs)]
    const range = `TSBegin=${startNs}&TSEnd=${endNs}`
    const { body } = await httpGet(`${gateway.url}/api/v1/pcap/timerange?${range}`, {
      user: GATEWAY_CREDENTIALS,
    })
    assert.ok(body.length > (KILLS + 1) * STEP_BYTES, `${body.length} bytes`)
    whole = createHash('sha256').update(body).digest('hex')
  })
  after(() => parts.disposeAsync())

  const environment = () => gatewayEnvironment(front.url, USER, PASSWORD)
  const portOf = (url: string) => Number(new URL(url).port)

  /** The download stalls after this many bytes on this connection. */
  const stoppedAt = async (path: string, bytes: number) => {
    await eventually(async () => (await sizeOf(path)) > bytes, { message: `${bytes} in ${path}` })
  }

  const killAndStart = async () => {
    await gateway.signal('SIGKILL')
    front.hangUp()
    await gateway.start()
    front.targetPort = portOf(gateway.url)
  }

  test(`${KILLS} times: the file is what sha256sum confirms`, async () => {
    front.targetPort = portOf(gateway.url)
    front.limitBytes = STEP_BYTES
    const run = client.start(['get', ...rangeFlags, '-o', 'day.pcap'], { environment: environment() })
    const part = join(client.folder, 'day.pcap.part')
    for (let kill = 1; kill <= KILLS; kill += 1) {
      await stoppedAt(part, kill * STEP_BYTES - 100_000)
      // The partial file is a valid capture file at any time.
      if (kill < KILLS) execFileSync('tcpdump', ['-nr', part, '-w', '/dev/null'], { stdio: 'ignore' })
      else front.limitBytes = Number.POSITIVE_INFINITY
      await killAndStart()
    }
    const { status, stderr } = await run.ended
    assert.equal(status, 0, stderr)
    assert.ok((stderr.match(/the connection broke/g) ?? []).length >= KILLS, stderr)
    assert.match(stderr, new RegExp(`day\\.pcap: complete, \\d+ bytes, sha256 ${whole}`))
    const [sum] = execFileSync('sha256sum', [join(client.folder, 'day.pcap')], { encoding: 'utf8' }).split(
      ' ',
    )
    assert.equal(sum, whole)
    assert.deepEqual(await readdir(client.folder), ['day.pcap'])
  })

  test('and the pipe gets each byte once', async () => {
    front.targetPort = portOf(gateway.url)
    front.limitBytes = STEP_BYTES
    const run = client.start(['get', ...rangeFlags, '-o', '-'], { environment: environment() })
    let came = 0
    run.child.stdout?.on('data', (chunk: Buffer) => {
      came += chunk.length
    })
    await eventually(() => came > STEP_BYTES - 100_000, { message: 'the first step' })
    front.limitBytes = Number.POSITIVE_INFINITY
    await killAndStart()
    const { status, stdout, stderr } = await run.ended
    assert.equal(status, 0, stderr)
    assert.equal(createHash('sha256').update(stdout).digest('hex'), whole)
  })

  test('7: what cannot continue ends inside a packet, for the program after the pipe', async () => {
    front.targetPort = portOf(gateway.url)
    front.limitBytes = STEP_BYTES
    const command = ['get', ...rangeFlags, '-o', '-', '--retries', '0']
    const run = client.start(command, { environment: environment() })
    let came = 0
    run.child.stdout?.on('data', (chunk: Buffer) => {
      came += chunk.length
    })
    await eventually(() => came > STEP_BYTES - 100_000, { message: 'the first step' })
    front.limitBytes = Number.POSITIVE_INFINITY
    await killAndStart()
    const { status, stdout, stderr } = await run.ended
    assert.equal(status, 7, stderr)
    const read = spawnSync('tcpdump', ['-nr', '-', '-w', '/dev/null'], { input: stdout, encoding: 'utf8' })
    assert.match(read.stderr, /truncated dump file/)
  })

  for (const signal of ['SIGKILL', 'SIGINT'] as const) {
    test(`${signal} of capfleet itself: the same command continues with the part`, async () => {
      front.targetPort = portOf(gateway.url)
      front.limitBytes = STEP_BYTES
      const name = `${signal}.pcap`
      const command = ['get', ...rangeFlags, '-o', name]
      const run = client.start(command, { environment: environment() })
      await stoppedAt(join(client.folder, `${name}.part`), STEP_BYTES - 100_000)
      run.child.kill(signal)
      const ended = await run.ended
      assert.equal(ended.status, signal === 'SIGINT' ? 130 : null)
      if (signal === 'SIGINT')
        assert.match(ended.stderr, /SIGINT\.pcap\.part has 1[01]\.\d MiB; run the same command to resume/)
      front.limitBytes = Number.POSITIVE_INFINITY
      const again = await client.run(command, { environment: environment() })
      assert.equal(again.status, 0, again.stderr)
      assert.match(again.stderr, /resuming after the 1[12]\d{6} bytes/)
      assert.equal(
        createHash('sha256')
          .update(await readFile(join(client.folder, name)))
          .digest('hex'),
        whole,
      )
    })
  }

  test('a split that is cut has the packets of the whole, each file with a header', async () => {
    front.targetPort = portOf(gateway.url)
    front.limitBytes = STEP_BYTES
    const run = client.start(['get', ...rangeFlags, '-o', 'split.pcap', '--split', '5MB'], {
      environment: environment(),
    })
    await stoppedAt(join(client.folder, 'split-0003.pcap.part'), 1_000_000)
    front.limitBytes = Number.POSITIVE_INFINITY
    await killAndStart()
    const { status, stderr } = await run.ended
    assert.equal(status, 0, stderr)
    const names = (await readdir(client.folder)).filter((name) => name.startsWith('split')).sort()
    const files = await Promise.all(names.map((name) => readFile(join(client.folder, name))))
    assert.ok(
      files.length > 10 && files.every(({ length }) => length <= 5_000_000 && length > 24),
      names.join(),
    )
    const body = Buffer.concat(files.map((file, index) => (index === 0 ? file : file.subarray(24))))
    assert.equal(createHash('sha256').update(body).digest('hex'), whole)
    assert.ok(files.every((file) => file.subarray(0, 24).equals(body.subarray(0, 24))))
  })

  test('a compressed download starts over, as no part of it can be continued', async () => {
    front.targetPort = portOf(gateway.url)
    front.limitBytes = 20_000
    const run = client.start(['get', ...rangeFlags, '-o', 'small.pcap.zst', '--compression', 'zstd'], {
      environment: environment(),
    })
    await stoppedAt(join(client.folder, 'small.pcap.zst.part'), 10_000)
    front.limitBytes = Number.POSITIVE_INFINITY
    await killAndStart()
    const { status, stderr } = await run.ended
    assert.equal(status, 0, stderr)
    const plain = execFileSync('zstd', ['-dc', join(client.folder, 'small.pcap.zst')], { maxBuffer: 1 << 28 })
    assert.equal(createHash('sha256').update(plain).digest('hex'), whole)
  })
})

async function sizeOf(path: string): Promise<number> {
  return await stat(path).then(
    ({ size }) => size,
    () => 0,
  )
}
