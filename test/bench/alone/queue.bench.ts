/**
 * The scheduler with 1,000 devices and 100,000 waiting requests, one gateway, and its own Redis with an append-only
 * file: requests queued per second; grants per second if streams take no time; the time from the release of a stream to
 * the next one's start at a thousand grants per second; and the memory of Redis. The peer, before and after: the same
 * client calling a script of one command.
 */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import type { Lease } from '../../../src/gateway/lease/lease.ts'
import { LeaseScheduler } from '../../../src/gateway/lease/lease-scheduler.ts'
import { SILENT_LOG } from '../../support/lease/lease-user.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'

const PREFIX = 'bench'
const DEVICES = 1_000
const STREAMS = 4
const WAITING = 100_000
const USERS = 500
const PEER_CALLS = 100_000
const ENQUEUED_AT_ONCE = 500
const SATURATED_MS = 5_000
const PACED_MS = 10_000
/** Releasing all streams after this time makes a thousand grants per second. */
const HOLD_MS = DEVICES * STREAMS

/** Prints the figures and leaves nothing behind. */
export async function printQueueFigures(): Promise<void> {
  await using server = await TempRedis.create()
  await server.settle(PREFIX)
  await printPeer(server)
  const bench = new QueueBench(
    await LeaseScheduler.start({
      redis: { url: server.url },
      keyPrefix: PREFIX,
      streamsPerDevice: STREAMS,
      log: SILENT_LOG,
      sole: true,
    }),
    () => redisCpuUs(server),
  )
  await bench.fill()
  print('memory of Redis', (await memoryMiB(server)).toFixed(1), 'MiB')
  await bench.pace()
  await bench.saturate()
  await bench.close()
  await printPeer(server)
}

class QueueBench {
  readonly #scheduler: LeaseScheduler
  readonly #redisUs: () => Promise<number>
  readonly #held: Lease[] = []
  /** Per device, the times of releases that no request has used yet. */
  readonly #freedMs = new Map<string, number[]>()
  readonly #wakesMs: number[] = []
  #granted = 0
  /** What to do with a granted lease. */
  #use: (lease: Lease) => void = (lease) => this.#held.push(lease)

  constructor(scheduler: LeaseScheduler, redisUs: () => Promise<number>) {
    this.#scheduler = scheduler
    this.#redisUs = redisUs
  }

  async fill(): Promise<void> {
    for (let i = 0; i < DEVICES * STREAMS; i += 1) void this.#ask(i)
    while (this.#granted < DEVICES * STREAMS) await tick()
    const startMs = performance.now()
    const [redisUs, ownUs] = [await this.#redisUs(), ownCpuUs()]
    let asked = 0
    const lane = async () => {
      while (asked < WAITING) await this.#ask(asked++)
    }
    await Promise.all(Array.from({ length: ENQUEUED_AT_ONCE }, lane))
    print('queued', (WAITING / ((performance.now() - startMs) / 1_000)).toFixed(0), 'requests/s')
    const each = (us: number) => (us / WAITING).toFixed(1)
    print(
      'processor time each',
      `Redis ${each((await this.#redisUs()) - redisUs)} gateway ${each(ownCpuUs() - ownUs)}`,
      'us',
    )
  }

  /** Each stream takes HOLD_MS; a finished client rejoins at the end of the queue. */
  async pace(): Promise<void> {
    const timers = new Set<NodeJS.Timeout>()
    const hold = (lease: Lease, ms: number) => {
      const timer = setTimeout(() => {
        timers.delete(timer)
        this.#giveBackTimed(lease)
      }, ms)
      timers.add(timer)
    }
    this.#use = (lease) => {
      this.#held.push(lease)
      hold(lease, HOLD_MS)
    }
    for (const [i, lease] of this.#held.splice(0).entries()) {
      this.#held.push(lease)
      hold(lease, (HOLD_MS * i) / (DEVICES * STREAMS))
    }
    const before = this.#granted
    await new Promise((resolve) => setTimeout(resolve, PACED_MS))
    for (const timer of timers) clearTimeout(timer)
    const sorted = this.#wakesMs.sort((a, b) => a - b)
    const share = (part: number) => (sorted[Math.floor(sorted.length * part)] ?? Number.NaN).toFixed(2)
    const rate = ((this.#granted - before) / (PACED_MS / 1_000)).toFixed(0)
    print(`woken, at ${rate} grants/s`, `p50 ${share(0.5)} p99 ${share(0.99)} p99.9 ${share(0.999)}`, 'ms')
  }

  /** No stream takes any time. */
  async saturate(): Promise<void> {
    this.#use = (lease) => this.#giveBackTimed(lease)
    const before = this.#granted
    const startMs = performance.now()
    for (const lease of this.#held.splice(0)) this.#giveBackTimed(lease)
    await new Promise((resolve) => setTimeout(resolve, SATURATED_MS))
    const seconds = (performance.now() - startMs) / 1_000
    print('saturated', ((this.#granted - before) / seconds).toFixed(0), 'grants/s')
  }

  async close(): Promise<void> {
    this.#use = (lease) => void lease[Symbol.asyncDispose]()
    await this.#scheduler.close()
  }

  /** Resolves when Redis has queued or granted it. */
  #ask(index: number): Promise<void> {
    const device = `device-${index % DEVICES}`
    return new Promise((told) => {
      const leased = this.#scheduler.acquire({
        id: randomUUID(),
        devices: [device],
        class: 'interactive',
        user: `user-${index % USERS}`,
        // A separate signal per request, as in the product: a shared one would search its listeners each time.
        signal: new AbortController().signal,
        waitMs: 3_600_000,
        onPosition: () => told(),
      })
      leased.then(
        (lease) => {
          told()
          this.#onGrant(device, lease)
        },
        () => told(),
      )
    })
  }

  #onGrant(device: string, lease: Lease): void {
    this.#granted += 1
    const freedMs = this.#freedMs.get(device)?.shift()
    if (freedMs !== undefined) this.#wakesMs.push(performance.now() - freedMs)
    this.#use(lease)
  }

  #giveBackTimed(lease: Lease): void {
    const [device = ''] = lease.devices
    const freed = this.#freedMs.get(device) ?? []
    freed.push(performance.now())
    this.#freedMs.set(device, freed)
    void lease[Symbol.asyncDispose]()
  }
}

async function printPeer(server: TempRedis): Promise<void> {
  const redis = new Redis(server.url)
  const sha = String(await redis.script('LOAD', "return redis.call('HGET', KEYS[1], 'x')"))
  const startMs = performance.now()
  let called = 0
  const lane = async () => {
    while (called++ < PEER_CALLS) await redis.evalsha(sha, 1, '{peer}:h')
  }
  await Promise.all(Array.from({ length: ENQUEUED_AT_ONCE }, lane))
  print(
    'peer: one-command script',
    (PEER_CALLS / ((performance.now() - startMs) / 1_000)).toFixed(0),
    'calls/s',
  )
  redis.disconnect()
}

async function memoryMiB(server: TempRedis): Promise<number> {
  const bytes = Number(/^used_memory:(\d+)/m.exec(await infoOf(server))?.[1])
  return bytes / 1_048_576
}

/** The time of its main thread. */
async function redisCpuUs(server: TempRedis): Promise<number> {
  const info = await infoOf(server)
  const seconds = (kind: string) =>
    Number(new RegExp(`^used_cpu_${kind}_main_thread:([0-9.]+)`, 'm').exec(info)?.[1])
  return (seconds('user') + seconds('sys')) * 1e6
}

function ownCpuUs(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

async function infoOf(server: TempRedis): Promise<string> {
  const redis = new Redis(server.url)
  const info = await redis.info()
  redis.disconnect()
  return info
}

function tick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function print(what: string, figure: string, unit: string): void {
  process.stdout.write(`queue  ${what.padEnd(28)} ${figure} ${unit}\n`)
}
