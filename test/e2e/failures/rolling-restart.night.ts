// Three gateways behind haproxy are restarted one after another while clients download with curl and `capfleet get`. A
// transfer shorter than the drain time is never cut, and `capfleet get` completes the longer ones too.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { FakeDevice } from '../../support/devices/fake-device.ts'
import { FLEET_BEGIN_NS, FLEET_RANGE, fleetPcap } from '../../support/devices/fake-fleet.ts'
import { eventually } from '../../support/eventually.ts'
import { gatewayEnvironment, type TempClient, tempClient } from '../../support/processes/client-process.ts'
import { GATEWAY_CREDENTIALS, GatewayProcess } from '../../support/processes/gateway-process.ts'
import {
  freePort,
  startTempBalancer,
  type TempProxy,
  WITHOUT_HAPROXY,
} from '../../support/processes/temp-proxy.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { type TempFolder, tempFolder } from '../../support/temp-folder.ts'

/** Some clients run long downloads; of the rest, half use curl and half `capfleet get`. */
const CLIENTS = Number(process.env.ROLLING_CLIENTS ?? 8)
const LONG_CLIENTS = Math.min(4, Math.floor(CLIENTS / 4))
const REPLICAS = 3
const DRAIN_S = Number(process.env.ROLLING_DRAIN_S ?? 3)
const FAST_DEVICES = ['d0', 'd1', 'd2', 'd3', 'd4', 'd5']
const PACKETS = 2_000
/**
 * About a megabyte in half a second; and one that lasts longer than all restarts together, so that its gateway ends
 * first.
 */
const PAUSE_MS = 25
const FAST = { chunkBytes: 50_000, pauseMs: PAUSE_MS }
const SLOW_MS = 1_000 * (REPLICAS * (DRAIN_S + 2) + 5)
const SLOW = { chunkBytes: Math.round((1_050_000 * PAUSE_MS) / SLOW_MS), pauseMs: PAUSE_MS }

/** How much the restarts may add to the time of a short download, including its wait in the queue. */
const ADDED_MS = 10_000

/** How long a gateway may take to end, in addition to the time for downloads. */
const END_S = 5

interface Transfer {
  readonly client: 'curl' | 'get' | 'long get'
  readonly isRight: boolean
  /** How often the client retried. */
  readonly retries: number
  readonly cuts: number
  /** Time from the first request to the last byte, including all waits. */
  readonly tookMs: number
  readonly said: string
}

describe('a rolling restart', { skip: WITHOUT_HAPROXY }, () => {
  const owned = new AsyncDisposableStack()
  const gateways: GatewayProcess[] = []
  const transfers: Transfer[] = []
  let folder: TempFolder
  let client: TempClient
  let balancer: TempProxy
  let isOver = false

  before(async () => {
    folder = owned.use(await tempFolder())
    client = owned.use(await tempClient())
    const redis = owned.use(await TempRedis.create())
    const devices: FakeDevice[] = []
    for (const [index, name] of [...FAST_DEVICES, 'slow'].entries()) {
      const device = owned.use(await FakeDevice.start(name, fleetPcap(index, PACKETS)))
      device.behaviour = name === 'slow' ? SLOW : FAST
      devices.push(device)
    }
    const urls: string[] = []
    for (let number = 0; number < REPLICAS; number += 1) {
      const port = await freePort()
      urls.push(`http://127.0.0.1:${port}`)
      const config = {
        listen: { port },
        redis: { url: redis.url },
        devices: devices.map((device) => device.config),
        drainS: DRAIN_S,
        downloads: { waitS: 55 },
      }
      const environment = { FAKE_DEVICE_PASSWORD: devices[0]?.password ?? '' }
      const options = { folder: folder.path, name: `g${number}`, config, environment }
      gateways.push(owned.use(await GatewayProcess.start(options)))
    }
    balancer = owned.use(await startTempBalancer(urls))
  })
  after(() => owned.disposeAsync())

  test(`under ${CLIENTS} clients cuts no transfer that is shorter than the drain, and each \`capfleet get\` ends whole`, async (t) => {
    const clients = Array.from({ length: CLIENTS }, (_, number) => loop(number))
    const has = (kind: Transfer['client']) => transfers.some((one) => one.client === kind)
    const isWarm = () => has('curl') && has('get') && transfers.length >= 2 * CLIENTS
    await eventually(isWarm, { message: 'downloads run' })
    const calm = transfers.length
    const ends: number[] = []
    const starts: number[] = []
    for (const gateway of gateways) {
      const startedMs = performance.now()
      assert.equal(await gateway.signal('SIGTERM'), 0)
      const endedMs = performance.now()
      ends.push((endedMs - startedMs) / 1_000)
      await gateway.start()
      starts.push((performance.now() - endedMs) / 1_000)
      await untilUsed(gateway)
    }
    isOver = true
    await Promise.all(clients)
    report(t, transfers, { calm, ends, starts })
    // On a busy machine a short download may take longer than the drain, too; curl does not resume it then.
    const mayBeCut = ({ tookMs, cuts }: Transfer) => cuts > 0 && tookMs > DRAIN_S * 1_000
    const wrong = transfers.filter(({ isRight }) => !isRight)
    assert.deepEqual(
      wrong.filter((one) => one.client !== 'curl' || !mayBeCut(one)),
      [],
    )
    const isLong = (one: Transfer) => one.client === 'long get' || mayBeCut(one)
    assert.equal(sum(transfers.filter((one) => !isLong(one)).map(({ cuts }) => cuts)), 0)
    assert.ok(transfers.some(({ client: kind, cuts }) => kind === 'long get' && cuts > 0))
    const short = transfers.filter((one) => one.client !== 'long get')
    const longest = (some: readonly Transfer[]) => Math.max(...some.map(({ tookMs }) => tookMs))
    const addedMs = longest(short.slice(calm)) - longest(short.slice(0, calm))
    assert.ok(addedMs < ADDED_MS, `${addedMs} ms`)
    assert.ok(
      ends.every((seconds) => seconds < DRAIN_S + END_S),
      ends.join(),
    )
  })

  /** Until haproxy sends it requests again. */
  async function untilUsed({ url }: GatewayProcess): Promise<void> {
    const served = async () => {
      const text = await (await fetch(`${url}/metrics`)).text()
      return /capfleet_http_requests_total\{method="GET",status="200"\} [2-9]/.test(text)
    }
    await eventually(served, { message: 'the gateway is used again' })
  }

  async function loop(number: number): Promise<void> {
    const isLong = number < LONG_CLIENTS
    const kind = isLong ? 'long get' : number % 2 === 0 ? 'curl' : 'get'
    for (let round = 0; !isOver; round += 1) {
      const index = isLong ? FAST_DEVICES.length : (number + round) % FAST_DEVICES.length
      const device = isLong ? 'slow' : (FAST_DEVICES[index] ?? '')
      const path = join(folder.path, `${number}.pcap`)
      const startedMs = performance.now()
      const run = kind === 'curl' ? await byCurl(device, path) : await byGet(device, path)
      const tookMs = performance.now() - startedMs
      const body = await readFile(path).catch(() => Buffer.alloc(0))
      await rm(path, { force: true })
      const isRight = run.isWell && body.equals(fleetPcap(index, PACKETS))
      transfers.push({ client: kind, ...run, isRight, tookMs })
    }
  }

  type Run = Omit<Transfer, 'client' | 'isRight' | 'tookMs'> & { readonly isWell: boolean }

  /** As a script would use curl: retries after a 503 with Retry-After, but not after a cut. */
  function byCurl(device: string, path: string): Promise<Run> {
    const url = `${balancer.url}/devices/${device}/api/v1/pcap/timerange?${FLEET_RANGE}`
    const args = [
      '--no-progress-meter',
      '--user',
      GATEWAY_CREDENTIALS,
      '--retry',
      '10',
      '-o',
      path,
      '-w',
      '%{http_code}',
      url,
    ]
    return new Promise((resolve) => {
      execFile('curl', args, (error, stdout, stderr) => {
        const isCut = CUT_STATUSES.includes(Number(error?.code))
        resolve({
          isWell: error === null && stdout === '200',
          retries: count(stderr, /will retry/gi),
          cuts: isCut ? 1 : 0,
          said: `${stdout} ${stderr}`,
        })
      })
    })
  }

  async function byGet(device: string, path: string): Promise<Run> {
    const [user = '', password = ''] = GATEWAY_CREDENTIALS.split(':')
    const range = ['--begin', `${FLEET_BEGIN_NS}`, '--end', `${FLEET_BEGIN_NS + 3_600_000_000_000n}`]
    const { status, stderr } = await client.run(['get', ...range, '-d', device, '-o', path, '--wait', '55'], {
      environment: gatewayEnvironment(balancer.url, user, password),
    })
    return {
      isWell: status === 0,
      retries: count(stderr, /retrying in/g),
      cuts: count(stderr, /connection broke|ended inside a packet/g),
      said: stderr,
    }
  }
})

/** Exit codes of curl: the body was shorter than announced; the connection was reset. */
const CUT_STATUSES = [18, 56]

interface Restarts {
  /** This many transfers had ended before the first restart. */
  readonly calm: number
  /** How many seconds each replica took to end, and to start. */
  readonly ends: readonly number[]
  readonly starts: readonly number[]
}

function report(t: TestContext, transfers: readonly Transfer[], { calm, ends, starts }: Restarts): void {
  for (const kind of ['curl', 'get', 'long get'] as const) {
    const some = transfers.filter((one) => one.client === kind)
    const longest = (from: number, to?: number) =>
      (
        Math.max(
          0,
          ...transfers
            .slice(from, to)
            .filter((one) => one.client === kind)
            .map(({ tookMs }) => tookMs),
        ) / 1_000
      ).toFixed(1)
    t.diagnostic(
      `${kind}: ${some.length} transfers, ${some.filter(({ isRight }) => !isRight).length} failed, ${sum(some.map(({ cuts }) => cuts))} cut, ` +
        `${sum(some.map(({ retries }) => retries))} asked again, longest ${longest(0, calm)} s before and ${longest(calm)} s during the restarts`,
    )
  }
  const shown = (seconds: readonly number[]) => seconds.map((one) => one.toFixed(1)).join(', ')
  t.diagnostic(`seconds of the replicas to end: ${shown(ends)}; to start: ${shown(starts)}`)
}

function count(text: string, pattern: RegExp): number {
  return [...text.matchAll(pattern)].length
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0)
}
