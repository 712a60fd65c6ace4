// Many impatient clients at once, restarts of Redis, devices that die, and an orderly shutdown.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { impatientDownload } from '../../support/clients/impatient-client.ts'
import { FakeDevice } from '../../support/devices/fake-device.ts'
import { FLEET_RANGE, fleetPcap, startFakeFleet } from '../../support/devices/fake-fleet.ts'
import { httpOpen } from '../../support/http-get.ts'
import { readPcap } from '../../support/packets/pcap-records.ts'
import { startTempGateway, type TempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { type SeededRandom, seededRandom } from '../../support/seeded-random.ts'

const PACKETS = 1_500
const IS_LONG = process.env.CAPFLEET_LONG === '1'
const CLIENTS = IS_LONG ? 64 : 32
const ROUNDS = IS_LONG ? 8 : 4
const TIMERANGE = `/api/v1/pcap/timerange?${FLEET_RANGE}`

interface Setting extends AsyncDisposable {
  readonly redis: TempRedis
  readonly fleet: FakeDevice[]
  readonly gateways: readonly TempGateway[]
}

async function setUp(gateways: number, settings: Record<string, unknown> = {}): Promise<Setting> {
  const stack = new AsyncDisposableStack()
  const redis = stack.use(await TempRedis.create())
  const fleet = await startFakeFleet(PACKETS)
  for (const device of fleet) stack.use(device)
  const started: TempGateway[] = []
  for (let i = 0; i < gateways; i += 1)
    started.push(stack.use(await startTempGateway(fleet, redis.url, settings)))
  return { redis, fleet, gateways: started, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

async function untilNothingIsLeft({ redis, fleet }: Setting): Promise<void> {
  for (const device of fleet) await device.until(() => device.readers === 0)
  await redis.until(async () => (await redis.leftovers('capfleet')).length === 0)
}

describe('under load', () => {
  test(`${CLIENTS} clients open, abort and finish: never five on a device, nothing leaked, all clean ends complete`, async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    await using setting = await setUp(2, { downloads: { waitS: 55 } })
    const { complete, aborted } = await load(setting, random, ROUNDS)
    await untilNothingIsLeft(setting)
    t.diagnostic(`${complete} complete, ${aborted} aborted`)
    assert.ok(complete > CLIENTS && aborted > CLIENTS)
    for (const device of setting.fleet) {
      assert.equal(device.overruns, 0)
      assert.equal(device.mostReaders, 4)
    }
  })

  test('negative control: gateways that do not share their queue are caught', async () => {
    await using setting = await setUp(1)
    await using stranger = await startTempGateway(setting.fleet, setting.redis.url, {
      redis: { url: setting.redis.url, keyPrefix: 'stranger' },
    })
    const [first] = setting.fleet as [FakeDevice]
    first.behaviour = { hangAfterBytes: 1_000 }
    using held = new DisposableStack()
    for (const gateway of [...setting.gateways, stranger]) {
      for (let index = 0; index < 3; index += 1) {
        const url = `${gateway.url}/devices/d0${TIMERANGE}&Wait=0`
        held.use(await httpOpen(url, { headers: gateway.as.user }))
      }
    }
    assert.ok(first.overruns > 0)
  })

  /** All clients at once; every body with a clean end is checked to be complete. */
  async function load({ fleet, gateways }: Setting, random: SeededRandom, rounds: number) {
    for (const device of fleet) device.behaviour = { chunkBytes: 100_000, pauseMs: 2 }
    let complete = 0
    let aborted = 0
    const client = async (): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) {
        const gateway = random.pick(gateways)
        const device = random.pick(['fleet', 0, 1, 2] as const)
        const path = device === 'fleet' ? TIMERANGE : `/devices/d${device}${TIMERANGE}`
        const abortAfter = random.pick([Infinity, Infinity, 0, 30_000, 400_000])
        const bytes = await impatientDownload(gateway.url + path, {
          headers: gateway.as.user,
          leaveAfterBytes: abortAfter,
          leaveAfterMs: random.integer(0, 40),
        })
        if (bytes === undefined) aborted += 1
        else {
          complete += 1
          assert.equal(readPcap(bytes).records.length, device === 'fleet' ? 3 * PACKETS : PACKETS)
        }
      }
    }
    await Promise.all(Array.from({ length: CLIENTS }, client))
    return { complete, aborted }
  }

  test('a running download survives a restart of Redis and gives its lease back afterwards', async () => {
    await using setting = await setUp(1)
    const { fleet, gateways, redis } = setting
    const [gateway] = gateways as [TempGateway]
    const { promise: resumed, resolve: resume } = Promise.withResolvers<void>()
    for (const device of fleet) device.behaviour = { hangAfterBytes: 100_000, resumed }
    const answer = await fetch(gateway.url + TIMERANGE, { headers: gateway.as.user })
    await redis.stop('SIGKILL')
    const refused = await fetch(gateway.url + TIMERANGE, { headers: gateway.as.user })
    assert.equal(refused.status, 503)
    assert.equal(((await refused.json()) as { code: string }).code, 'scheduler-unavailable')
    assert.ok(Number(refused.headers.get('retry-after')) > 0)
    await redis.start()
    resume()
    assert.equal(readPcap(Buffer.from(await answer.arrayBuffer())).records.length, 3 * PACKETS)
    await untilNothingIsLeft(setting)
  })

  test('a device killed in the middle of a merge: the body is cut, the next request is 502 at once, and it recovers', async () => {
    await using setting = await setUp(1, { downloads: { retryPauseMs: 10 } })
    const { fleet, gateways } = setting
    const [gateway] = gateways as [TempGateway]
    const [first] = fleet as [FakeDevice]
    first.behaviour = { hangAfterBytes: 10_000 }
    const answer = await fetch(gateway.url + TIMERANGE, { headers: gateway.as.user })
    const { port } = first
    await first.kill()
    await assert.rejects(answer.arrayBuffer())
    const refused = await fetch(gateway.url + TIMERANGE, { headers: gateway.as.user })
    const problem = (await refused.json()) as Record<string, unknown>
    assert.deepEqual([refused.status, problem.code, problem.devices], [502, 'device-unreachable', ['d0']])
    await untilNothingIsLeft(setting)
    await using again = await FakeDevice.start('d0', fleetPcap(0, PACKETS), port)
    const whole = await fetch(gateway.url + TIMERANGE, { headers: gateway.as.user })
    assert.equal(readPcap(Buffer.from(await whole.arrayBuffer())).records.length, 3 * PACKETS)
    assert.equal(again.mostReaders, 1)
  })

  test('shutdown completes a running download, rejects new ones, and gives everything back', async () => {
    await using setting = await setUp(1)
    const { fleet, gateways } = setting
    const [gateway] = gateways as [TempGateway]
    const { promise: resumed, resolve: resume } = Promise.withResolvers<void>()
    for (const device of fleet) device.behaviour = { hangAfterBytes: 100_000, resumed }
    const running = await fetch(gateway.url + TIMERANGE, { headers: gateway.as.user })
    const closed = gateway.close(30_000)
    const refused = await fetch(gateway.url + TIMERANGE, { headers: gateway.as.user })
    assert.deepEqual([refused.status, ((await refused.json()) as { code: string }).code], [503, 'draining'])
    assert.equal((await fetch(`${gateway.url}/readyz`)).status, 503)
    resume()
    assert.equal(readPcap(Buffer.from(await running.arrayBuffer())).records.length, 3 * PACKETS)
    await closed
    await untilNothingIsLeft(setting)
  })

  test('shutdown cuts what does not end in time, inside a record', async () => {
    await using setting = await setUp(1)
    const { fleet, gateways } = setting
    const [gateway] = gateways as [TempGateway]
    for (const device of fleet) device.behaviour = { hangAfterBytes: 10_000 }
    const running = await fetch(gateway.url + TIMERANGE, { headers: gateway.as.user })
    const body = collect(running)
    await gateway.close(50)
    const { bytes, failed } = await body
    assert.ok(failed, 'the body has no clean end')
    assert.throws(() => readPcap(bytes), /inside the record|out of range/)
    await untilNothingIsLeft(setting)
  })

  async function collect(answer: Response): Promise<{ bytes: Buffer; failed: boolean }> {
    const chunks: Uint8Array[] = []
    try {
      for await (const chunk of answer.body ?? []) chunks.push(chunk)
      return { bytes: Buffer.concat(chunks), failed: false }
    } catch {
      return { bytes: Buffer.concat(chunks), failed: true }
    }
  }
})
