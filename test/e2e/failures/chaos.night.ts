/**
 * Gateways, Redis and the network fail at random under load, while the simulated devices count readers.
 *
 *   npm run chaos -- 10000     number of events (200 in npm test), about four per second
 *   SEED=<n>                   repeats the choice of events and downloads, not their exact timing
 *   CHAOS_EVENTS=<n>           the same as the argument
 *
 * A fifth reader is one that reaches a device while four others are there. The device rejects it, and its download
 * continues to wait. The network in between can be cut, and a gateway that closes its connection then cannot tell the
 * device. Such stranded readers are not counted among the four; all others are.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { type ChaosEnd, type ChaosResult, chaosDownload } from '../../support/chaos/chaos-client.ts'
import { ChaosCrowd, type CrowdDownload } from '../../support/chaos/chaos-crowd.ts'
import { ChaosEvents } from '../../support/chaos/chaos-events.ts'
import { ChaosWorld } from '../../support/chaos/chaos-world.ts'
import { simulatedCapture, simulatedRange } from '../../support/devices/simulated-capture.ts'
import { eventually } from '../../support/eventually.ts'
import { httpOpen } from '../../support/http-get.ts'
import { pause } from '../../support/pause.ts'
import { GATEWAY_AUTHORIZATION } from '../../support/processes/gateway-process.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { TEST_LIMIT_MS } from '../../support/test-limits.ts'

const EVENTS = Number(process.env.CHAOS_EVENTS ?? 120)
const EVERY_MS = EVENTS > 200 ? 150 : 100
const CLIENTS = 40
/** The last downloads queue for the streams of all others; then each takes half a second. */
const LAST_WAIT_S = 55
/** Longer than a lease (5 s), shorter than the streams (15 s). */
const LAPSE_MS = 9_000
const LONG_PACKETS = 6_000
const PACE = { packets: LONG_PACKETS + 10, packetsPerTick: 10, tickMs: 25 }
const IS_LONG = EVENTS > 200
const ROUNDS = IS_LONG ? 20 : 1
/**
 * Lease 5 s, probe and heartbeat 1 s each: recovery takes at most 8 s, and 1 s after a client left. The long run
 * requires this of the gateway. The quick run shares its machine and only distinguishes a stream that is given back
 * from one that waits for a timeout (60 s).
 */
const KILL_RECOVERY_MS = IS_LONG ? 8_000 : 30_000
const ABORT_RECOVERY_MS = IS_LONG ? 1_000 : 10_000
const RECOVERY_WAIT_S = 40
/** One in this many streams that devices served may have been a fifth one, mostly just after a stream had ended. */
const STREAMS_A_FIFTH = 200

describe('chaos', { timeout: TEST_LIMIT_MS + EVENTS * 600 }, () => {
  test(`${EVENTS} failures: hardly a fifth reader, no false end, no stream cut by Redis, no leak, no deadlock`, async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    await using world = await ChaosWorld.create({ gateways: 3, devices: 8, pace: PACE })
    const events = new ChaosEvents(world, random)
    const crowd = new ChaosCrowd(world, random)
    const startedMs = performance.now()
    const phase = (name: string) =>
      t.diagnostic(`${name} after ${Math.round(performance.now() - startedMs)} ms`)
    await crowd.run(
      CLIENTS,
      events.run(EVENTS, EVERY_MS).then(() => phase('the last failure')),
    )
    phase('the last client')
    const last = await crowd.lastRound(CLIENTS, LAST_WAIT_S)
    phase('the last round')
    tell(t, events, crowd)
    assert.deepEqual(await verdict(world, events, { crowd, last }), FLAWLESS)
    const { fifths, refused, served } = await world.fleet.state()
    t.diagnostic(`${fifths.length} fifth readers, ${refused} refused, ${served} served`)
    assert.ok(fifths.length <= 2 + served / STREAMS_A_FIFTH, `${fifths.length} of ${served} were fifths`)
    assert.ok(
      crowd.count('complete') > EVENTS / 20,
      `the world was alive: ${crowd.count('complete')} downloads`,
    )
  })
})

// Each of these mostly waits for leases to expire.
describe('a gateway', { timeout: TEST_LIMIT_MS + ROUNDS * 120_000, concurrency: true }, () => {
  test(`a stream is free ${KILL_RECOVERY_MS / 1_000} s after its gateway was killed`, async (t) => {
    await using world = await ChaosWorld.create({ gateways: 2, devices: 1, pace: PACE })
    const [victim, other] = world.gateways
    assert.ok(victim && other)
    for (let round = 0; round < ROUNDS; round += 1) {
      await holdAllStreams(world, victim.url)
      await victim.signal('SIGKILL')
      const next = await chaosDownload({ ...WHOLE, url: other.url, packets: 20, waitS: RECOVERY_WAIT_S })
      t.diagnostic(`free after ${(next.headMs ?? next.endedMs) - next.startedMs} ms`)
      assert.equal(next.end, 'complete', next.code)
      assert.ok((next.headMs ?? Infinity) - next.startedMs <= KILL_RECOVERY_MS)
      await victim.start()
    }
    assert.deepEqual((await world.fleet.state()).fifths, [])
  })

  test(`a stream is free ${ABORT_RECOVERY_MS / 1_000} s after its client left`, async (t) => {
    await using world = await ChaosWorld.create({ gateways: 2, devices: 1, pace: PACE })
    const [first, second] = world.gateways
    assert.ok(first && second)
    for (let round = 0; round < ROUNDS; round += 1) {
      const leave = await holdAllStreams(world, first.url)
      const next = chaosDownload({ ...WHOLE, url: second.url, packets: 20, waitS: RECOVERY_WAIT_S })
      await Promise.race([
        eventually(async () => (await queueLength(world)) === 1, { message: 'it waits' }),
        next.then((ended) => assert.fail(`did not wait: ${JSON.stringify(ended)}`)),
      ])
      const leftMs = Date.now()
      leave()
      const { end, headMs = Infinity } = await next
      t.diagnostic(`free after ${headMs - leftMs} ms`)
      assert.equal(end, 'complete')
      assert.ok(headMs - leftMs <= ABORT_RECOVERY_MS)
      await eventually(async () => (await world.leakedKeys()).length === 0, { message: 'free' })
    }
    assert.deepEqual((await world.fleet.state()).fifths, [])
  })

  test(`${LAPSE_MS / 1_000} s of a stopped process or a cut off Redis cut no stream and admit no fifth reader`, async () => {
    await using world = await ChaosWorld.create({ gateways: 3, devices: 2, pace: PACE })
    const ends = await lapseOfTwo(world)
    assert.deepEqual(
      ends,
      Array.from({ length: 10 }, () => 'complete'),
    )
    const { fifths, mostReaders } = await world.fleet.state()
    assert.deepEqual({ fifths, mostReaders }, { fifths: [], mostReaders: [4, 4] })
  })

  test('negative control: streams of lapsed gateways that a device does not count admit a fifth reader', async () => {
    await using world = await ChaosWorld.create({ gateways: 3, devices: 2, pace: PACE, claimedReaders: 0 })
    await lapseOfTwo(world)
    assert.ok((await world.fleet.state()).fifths.length > 0)
  })

  test('negative control: gateways that do not share their queue send a fifth reader', async () => {
    const keyPrefixOf = (gateway: number) => `world${gateway}`
    await using world = await ChaosWorld.create({ gateways: 2, devices: 1, pace: PACE, keyPrefixOf })
    for (const { url } of [...world.gateways, ...world.gateways, ...world.gateways])
      void chaosDownload({ ...WHOLE, url, packets: LONG_PACKETS, leaveAfterMs: 20_000 })
    await eventually(async () => (await world.fleet.state()).fifths.length > 0, {
      message: 'the device saw a fifth reader',
    })
  })
})

describe('what a gateway cannot call back', { concurrency: true }, () => {
  test('requests of an outage that were given up do not arrive when it ends', async () => {
    await using world = await ChaosWorld.create({ gateways: 1, devices: 1, pace: PACE })
    const url = world.gateways[0]?.url ?? ''
    const short = { ...WHOLE, url, packets: 20 }
    assert.equal((await chaosDownload(short)).end, 'complete', 'Redis is no longer new')
    await world.fleet.cut('devices', 0)
    const leavers = [1, 2, 3].map(() =>
      chaosDownload({ ...WHOLE, url, packets: LONG_PACKETS, leaveAfterMs: 500 }),
    )
    assert.deepEqual(
      (await Promise.all(leavers)).map(({ end }) => end),
      ['left', 'left', 'left'],
    )
    await noLeaseLeft(world)
    await world.fleet.mend('devices', 0)
    assert.equal((await chaosDownload(short)).end, 'complete')
    const { mostReaders, refused } = await world.fleet.state()
    assert.deepEqual({ mostReaders, refused }, { mostReaders: [1], refused: 0 })
  })

  test('requests of an outage are refused when it ends, if their gateway was killed and others use all streams', async () => {
    await using world = await ChaosWorld.create({ gateways: 2, devices: 1, pace: PACE })
    const [victim, other] = world.gateways
    assert.ok(victim && other)
    const short = { ...WHOLE, url: other.url, packets: 20 }
    assert.equal((await chaosDownload(short)).end, 'complete', 'Redis is no longer new')
    await world.fleet.cut('devices', 0)
    const asked = [1, 2, 3].map(() => chaosDownload({ ...WHOLE, url: victim.url, packets: LONG_PACKETS }))
    await eventually(async () => (await world.redisCall('ZCARD', '{capfleet}:on:d0')) === 3, {
      message: 'three are granted',
    })
    await eventually(async () => (await world.fleet.state()).held === 3, {
      message: 'and their requests are on the way',
    })
    await victim.signal('SIGKILL')
    await Promise.all(asked)
    await noLeaseLeft(world)
    const held = [1, 2, 3, 4].map(() => chaosDownload({ ...WHOLE, url: other.url, packets: LONG_PACKETS }))
    await allStreamsUsed(world)
    await world.fleet.mend('devices', 0)
    await eventually(async () => (await world.fleet.state()).refused === 3, {
      message: 'the device has refused them',
    })
    assert.deepEqual(await endsOf(held), ['complete', 'complete', 'complete', 'complete'])
    assert.deepEqual((await world.fleet.state()).mostReaders, [4])
    await victim.start()
  })

  test('a request granted streams that Redis forgot is refused by the device, and waits until they end', async () => {
    await using world = await ChaosWorld.create({ gateways: 2, devices: 1, pace: PACE })
    const [silent, other] = world.gateways
    assert.ok(silent && other)
    const held = [1, 2, 3, 4].map(() => chaosDownload({ ...WHOLE, url: silent.url, packets: LONG_PACKETS }))
    await allStreamsUsed(world)
    await world.fleet.cut('redis', 0)
    await world.restartRedis({ empty: true })
    const next = await chaosDownload({ ...WHOLE, url: other.url, packets: 20 })
    assert.equal(next.end, 'complete')
    const { fifths, mostReaders } = await world.fleet.state()
    assert.ok(fifths.length > 0)
    assert.deepEqual(mostReaders, [4])
    await world.fleet.mend('redis', 0)
    assert.deepEqual(await endsOf(held), ['complete', 'complete', 'complete', 'complete'])
  })
})

describe('the checks of a chaos run', () => {
  test('negative control: a request that no longer exists is detected as a leak', async () => {
    await using world = await ChaosWorld.create({ gateways: 1, devices: 1, pace: PACE })
    assert.deepEqual(await world.leakedKeys(), [])
    await world.redisCall('HSET', '{capfleet}:r', 'ghost', 'g')
    assert.deepEqual(await world.leakedKeys(), ['{capfleet}:r'])
  })

  test('negative control: a whole number of records that is not the file is a false end', async () => {
    const { header, records } = simulatedCapture(0, 100)
    const short = Buffer.concat([header, ...records.map(({ bytes }) => bytes)])
    const server = createServer((_req, res) => res.end(short)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    assert.equal((await chaosDownload({ ...WHOLE, url, packets: 101 })).end, 'FALSE')
    assert.equal((await chaosDownload({ ...WHOLE, url, packets: 100 })).end, 'complete')
    server.close()
  })
})

/** Events that may cut a stream of the gateway that they hit. Losing Redis must not cut any stream. */
const GRAVE_TROUBLES = ['gateway-kill', 'gateway-stop', 'device-partition'] as const
const OWN_TROUBLES = [...GRAVE_TROUBLES, 'redis-partition'] as const

const FLAWLESS = {
  falseEnds: [],
  cutForNothing: [],
  refusedEarly: [],
  hung: 0,
  notServedInTheEnd: [],
  leaked: [],
}
/** Tolerance for timers of two processes. */
const TIMERS_DIFFER_MS = 50

/** The state after all clients have ended. */
async function verdict(
  world: ChaosWorld,
  events: ChaosEvents,
  { crowd, last }: { readonly crowd: ChaosCrowd; readonly last: readonly CrowdDownload[] },
): Promise<Record<keyof typeof FLAWLESS, unknown>> {
  const { downloads } = crowd
  const cutForNothing = downloads.filter(
    ({ end, gateway, startedMs, endedMs }) =>
      end === 'cut' && !events.hit(gateway, OWN_TROUBLES, startedMs, endedMs),
  )
  await eventually(async () => (await world.leakedKeys()).length === 0, {
    message: 'no key of a lease is left',
  }).catch(() => undefined)
  return {
    falseEnds: downloads.filter(({ end }) => end === 'FALSE').map(({ asked }) => asked),
    cutForNothing: cutForNothing.map(({ asked }) => asked),
    refusedEarly: downloads.filter(isRefusedEarly).map(({ asked, code }) => [asked, code]),
    hung: crowd.count('hung'),
    notServedInTheEnd: last.filter(({ end }) => end !== 'complete').map(({ end, code }) => [end, code]),
    leaked: await world.leakedKeys(),
  }
}

/**
 * Rejected for lack of a stream before its wait was over: a busy device must not end a download that may still wait.
 */
function isRefusedEarly({ end, code, asked, startedMs, endedMs }: CrowdDownload): boolean {
  const isForWant = end === 'refused' && /^(queue-timeout|download-slots-exhausted)$/.test(code)
  return isForWant && endedMs - startedMs < asked.waitS * 1_000 - TIMERS_DIFFER_MS
}

const WHOLE = { devices: [0], waitS: 55, leaveAfterMs: undefined, sleepMs: 0 } as const

/**
 * Two gateways hold all streams of one device each. One gateway is stopped and the other is cut off from Redis for
 * longer than a lease, while a third one waits for both devices. Returns how all ten downloads ended.
 */
async function lapseOfTwo({ gateways, fleet }: ChaosWorld): Promise<readonly string[]> {
  const [stopped, cutOff, other] = gateways
  assert.ok(stopped && cutOff && other)
  const held = [stopped, cutOff].flatMap(({ url }, device) =>
    Array.from({ length: 4 }, () =>
      chaosDownload({ ...WHOLE, devices: [device], url, packets: LONG_PACKETS }),
    ),
  )
  await eventually(async () => (await fleet.state()).readers.join() === '4,4', {
    message: 'all streams are in use',
  })
  await Promise.all([stopped.signal('SIGSTOP'), fleet.cut('redis', 1)])
  const waiting = [0, 1].map((device) =>
    chaosDownload({ ...WHOLE, devices: [device], url: other.url, packets: 100 }),
  )
  await pause(LAPSE_MS, 'its leases lapse')
  await Promise.all([stopped.signal('SIGCONT'), fleet.mend('redis', 1)])
  return (await Promise.all([...held, ...waiting])).map(({ end, code }) => `${end}${code}`)
}

/** Starts four long downloads from the only device; the returned function makes their clients leave. */
async function holdAllStreams(world: ChaosWorld, url: string): Promise<() => void> {
  const headers = { authorization: GATEWAY_AUTHORIZATION }
  const address = `${url}/devices/d0/api/v1/pcap/timerange?${simulatedRange(LONG_PACKETS)}`
  // Not fetch: it aborts an unread answer when the garbage collector finds it.
  const answers = await Promise.all(Array.from({ length: 4 }, () => httpOpen(address, { headers })))
  for (const { response } of answers) assert.equal(response.statusCode, 200)
  assert.deepEqual((await world.fleet.state()).readers, [4])
  return () => {
    for (const answer of answers) answer[Symbol.dispose]()
  }
}

/** In a world with one device. */
async function allStreamsUsed(world: ChaosWorld): Promise<void> {
  await eventually(async () => (await world.fleet.state()).readers.join() === '4', {
    message: 'all streams are in use',
  })
}

async function endsOf(downloads: readonly Promise<ChaosResult>[]): Promise<readonly ChaosEnd[]> {
  return (await Promise.all(downloads)).map(({ end }) => end)
}

async function noLeaseLeft(world: ChaosWorld): Promise<void> {
  await eventually(async () => (await world.leakedKeys()).length === 0, {
    message: 'the places are given back',
  })
}

async function queueLength(world: ChaosWorld): Promise<number> {
  return Number(await world.redisCall('ZCARD', '{capfleet}:q:d0'))
}

function tell(t: TestContext, events: ChaosEvents, crowd: ChaosCrowd): void {
  const kinds = Map.groupBy(events.records, ({ kind }) => kind)
  t.diagnostic([...kinds].map(([kind, list]) => `${kind} ${list.length}`).join(', '))
  const ends = Map.groupBy(crowd.downloads, ({ end, code }) => `${end} ${code}`.trim())
  t.diagnostic([...ends].map(([end, list]) => `${end} ${list.length}`).join(', '))
  const byRedis = crowd.downloads.filter(
    ({ end, gateway, startedMs, endedMs }) =>
      end === 'cut' && !events.hit(gateway, GRAVE_TROUBLES, startedMs, endedMs),
  )
  t.diagnostic(`${byRedis.length} cut while nothing but Redis was cut off from the gateway`)
}
