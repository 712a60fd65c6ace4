// Which time gateways and workers act on, and when they do not act, whatever the clocks of their hosts and of Redis
// show.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { SharedClock } from '../../../../src/gateway/redis/shared-clock.ts'
import { createLog } from '../../../../src/shared/base/log.ts'
import { Metrics } from '../../../../src/shared/base/metrics.ts'
import { TempRedis } from '../../../support/processes/temp-redis.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const NOW = 1_700_000_000_000
const JUMPS = [HOUR, -HOUR, 2 * DAY, -2 * DAY, 3_650 * DAY, -3_650 * DAY]
const PREFIX = 'clocks'

let redis: TempRedis
before(async () => {
  redis = await TempRedis.create()
})
after(() => redis[Symbol.asyncDispose]())
beforeEach(() => redis.settle(PREFIX))

/** A host and a Redis, whose clocks the test sets. */
class World {
  wallMs = NOW
  redisMs = NOW
  monotonicMs = 1_000
  bootId = 'boot-1'
  readonly metrics = new Metrics()

  start(metrics = new Metrics()): Promise<SharedClock> {
    return SharedClock.start({
      redis: { url: redis.url },
      keyPrefix: PREFIX,
      log: createLog('test', 'silent'),
      metrics,
      clocks: { wallMs: () => this.wallMs, monotonicMs: () => this.monotonicMs },
      readTimeMs: async () => this.redisMs,
      bootId: this.bootId,
    })
  }

  async pass(clock: SharedClock, ms: number): Promise<void> {
    for (let leftMs = ms; leftMs > 0; leftMs -= 30 * SECOND) {
      this.#run(Math.min(leftMs, 30 * SECOND))
      await clock.ask()
    }
  }

  /** While no program runs. */
  away(ms: number): void {
    this.#run(ms)
  }

  reboot(ms: number): void {
    this.#run(ms)
    this.monotonicMs = 500
    this.bootId = 'boot-2'
  }

  #run(ms: number): void {
    this.wallMs += ms
    this.redisMs += ms
    this.monotonicMs += ms
  }
}

test('is the time of Redis, continued in between', async () => {
  const world = new World()
  world.wallMs += 20 * SECOND
  await using clock = await world.start()
  assert.deepEqual([clock.nowMs(), clock.distrust], [NOW, undefined])
  world.monotonicMs += 10 * SECOND
  assert.equal(clock.nowMs(), NOW + 10 * SECOND)
})

describe('a host whose clock is more than a minute off', () => {
  for (const jump of JUMPS)
    test(`stops acting at once, and reports no other time (${jump / HOUR} h)`, async () => {
      const world = new World()
      await using clock = await world.start(world.metrics)
      world.wallMs += jump
      assert.deepEqual([clock.distrust, clock.nowMs()], ['host-differs', NOW])
      const text = await world.metrics.text()
      assert.match(text, /^capfleet_shared_clock_trusted 0$/m)
      assert.match(text, new RegExp(`^capfleet_shared_clock_difference_seconds ${jump / SECOND}$`, 'm'))
      await world.pass(clock, 2 * HOUR)
      assert.deepEqual([clock.distrust, clock.nowMs()], ['host-differs', NOW + 2 * HOUR])
      world.wallMs -= jump
      assert.equal(clock.distrust, undefined)
    })

  test('does not act from its start on', async () => {
    const world = new World()
    world.wallMs += 2 * MINUTE
    await using clock = await world.start()
    assert.equal(clock.distrust, 'host-differs')
  })
})

describe('a Redis whose clock steps', () => {
  for (const jump of JUMPS)
    test(`changes no time, and is trusted again when it is back (${jump / HOUR} h)`, async () => {
      for (const isSameHost of [true, false]) {
        await redis.settle(PREFIX)
        const world = new World()
        await using clock = await world.start()
        world.redisMs += jump
        if (isSameHost) world.wallMs += jump
        await world.pass(clock, 30 * SECOND)
        assert.deepEqual([clock.distrust, clock.nowMs()], ['redis-stepped', NOW + 30 * SECOND])
        world.redisMs -= jump
        if (isSameHost) world.wallMs -= jump
        await world.pass(clock, 30 * SECOND)
        assert.deepEqual([clock.distrust, clock.nowMs()], [undefined, NOW + MINUTE])
      }
    })

  test('is followed after an hour in which this host agrees with it', async () => {
    const world = new World()
    await using clock = await world.start()
    world.redisMs += DAY
    await world.pass(clock, 2 * HOUR)
    assert.equal(clock.distrust, 'redis-stepped', 'the clock of this host is elsewhere')
    world.wallMs += DAY
    await world.pass(clock, 59 * MINUTE)
    assert.equal(clock.distrust, 'redis-stepped')
    await world.pass(clock, 2 * MINUTE)
    assert.deepEqual([clock.distrust, clock.nowMs()], [undefined, world.redisMs])
  })
})

describe('between two starts', () => {
  for (const jump of JUMPS)
    test(`a step of host and Redis alike is noticed in the same boot (${jump / HOUR} h)`, async () => {
      const world = new World()
      {
        await using _clock = await world.start()
      }
      world.away(MINUTE)
      world.redisMs += jump
      world.wallMs += jump
      {
        await using clock = await world.start()
        assert.deepEqual([clock.distrust, clock.nowMs()], ['redis-stepped', NOW + MINUTE])
      }
      world.redisMs -= jump
      world.wallMs -= jump
      await using clock = await world.start()
      assert.equal(clock.distrust, undefined)
    })

  for (const jump of JUMPS)
    test(`and in another boot, if no program has reported the time meanwhile (${jump / HOUR} h)`, async () => {
      const world = new World()
      {
        await using _clock = await world.start()
      }
      world.reboot(MINUTE)
      world.redisMs += jump
      world.wallMs += jump
      await using clock = await world.start()
      assert.equal(clock.distrust, 'unconfirmed')
      world.redisMs -= jump
      world.wallMs -= jump
      await world.pass(clock, 30 * SECOND)
      assert.deepEqual([clock.distrust, clock.nowMs()], [undefined, world.redisMs])
    })

  test('a downtime of days is known as such in the same boot, and after an hour in another one', async () => {
    const world = new World()
    {
      await using _clock = await world.start()
    }
    world.away(3 * DAY)
    {
      await using clock = await world.start()
      assert.equal(clock.distrust, undefined)
    }
    world.reboot(3 * DAY)
    await using clock = await world.start()
    assert.equal(clock.distrust, 'unconfirmed')
    await world.pass(clock, 61 * MINUTE)
    assert.deepEqual([clock.distrust, clock.nowMs()], [undefined, world.redisMs])
  })

  test('a restart of the machine that takes minutes is trusted', async () => {
    const world = new World()
    {
      await using _clock = await world.start()
    }
    world.reboot(10 * MINUTE)
    await using clock = await world.start()
    assert.equal(clock.distrust, undefined)
  })
})

test('a Redis that is silent for a minute is no reason to act', async () => {
  const world = new World()
  await using clock = await world.start()
  world.away(59 * SECOND)
  assert.equal(clock.distrust, undefined)
  world.away(2 * SECOND)
  assert.deepEqual([clock.distrust, clock.nowMs()], ['redis-silent', NOW + 61 * SECOND])
  await clock.ask()
  assert.equal(clock.distrust, undefined)
})
